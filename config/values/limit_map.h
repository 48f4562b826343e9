// RATION_LIMIT: one size for every device, or DEVICE=SIZE items.
// Layer: config. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/values/size.h"

namespace ration::config {

struct DeviceIdentity {
  int ordinal = 0;                // as the program counts
  std::string uuid;               // "GPU-xxxxxxxx-xxxx-..." or "MIG-..."; empty: unknown
  std::uint64_t total_bytes = 0;  // physical
};

// Design: design/settings.md#device-items
struct LimitItem {
  int ordinal = -1;         // -1: none
  std::string uuid_prefix;  // lower case, without "GPU-"; empty: none
  Size size;
  std::string name;    // the device as the user wrote it; empty: every device
  std::string stated;  // Origin::written() of its setting

  // A device without a known UUID fits every UUID: a limit that cannot be assigned to a device holds on all.
  [[nodiscard]] bool fits(const DeviceIdentity &device) const;
};

using LimitMap = std::vector<LimitItem>;

// The least that the items which fit the device leave of it, in bytes; nothing: none fits. It may be more than its
// total.
std::optional<std::uint64_t> smallest_limit(const LimitMap &items, const DeviceIdentity &device);

// More than any machine has. What a limit names beyond them is an error.
inline constexpr std::size_t kMostDevices = 256;

// Appends every item that can be parsed, of the first kMostDevices, to `items`. Returns the first error; empty: none.
std::string parse_limit(std::string_view text, LimitMap &items);

// Gives the items that have no source yet this one, as Origin::written(). `everywhere`: an ordinal may mean any device,
// so its limit holds on all; returns whether there is one.
bool set_source_of_new(LimitMap &items, const std::string &written, bool everywhere);

// What is wrong with a limit once the devices are known.
struct DeviceError {
  enum class Kind {
    kAbsent,    // there is no such device: the limit holds nowhere
    kNoUuids,   // known of the devices: it holds on each
    kDoubtful,  // several devices fit, or one has two limits
  };
  Kind kind;
  std::string sentence;
  std::string stated;  // of its items
};
std::vector<DeviceError> errors_in_devices(const LimitMap &limit, const std::vector<DeviceIdentity> &devices);

}  // namespace ration::config

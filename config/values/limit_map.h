// The value of RATION_LIMIT: one size for every device, or a list of DEVICE=SIZE items.
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
  int ordinal = 0;                // as the program numbers its devices
  std::string uuid;               // "GPU-xxxxxxxx-xxxx-..." or "MIG-..."; empty: unknown
  std::uint64_t total_bytes = 0;  // the physical memory
};

// Design: design/settings.md#device-items
struct LimitItem {
  int ordinal = -1;         // -1: the item names no ordinal
  std::string uuid_prefix;  // lower case, without "GPU-"; empty: the item names no UUID
  Size size;
  std::string name;    // the device as the user wrote it; empty: every device
  std::string stated;  // Origin::written() of its setting

  // A device with an unknown UUID matches every item with a UUID, so a limit that cannot be assigned to one device
  // holds on all.
  [[nodiscard]] bool fits(const DeviceIdentity &device) const;
};

using LimitMap = std::vector<LimitItem>;

// The smallest limit, in bytes, among the items that match the device; nullopt if no item matches. It may exceed the
// device's total.
std::optional<std::uint64_t> smallest_limit(const LimitMap &items, const DeviceIdentity &device);

// More devices than any machine has. A limit that names even more devices is an error.
inline constexpr std::size_t kMostDevices = 256;

// Appends every item that can be parsed to `items`, for the first kMostDevices. Returns the first error, or "".
std::string parse_limit(std::string_view text, LimitMap &items);

// Sets `written`, an Origin::written(), as the source of the items that have none yet. If `everywhere` is true, an
// ordinal may mean any device, so its limit holds on all devices; returns true if there is such an item.
bool set_source_of_new(LimitMap &items, const std::string &written, bool everywhere);

// An error in a limit that is found only when the devices are known.
struct DeviceError {
  enum class Kind {
    kAbsent,    // there is no such device, so the limit has no effect
    kNoUuids,   // the devices' UUIDs are unknown, so the limit holds on each device
    kDoubtful,  // several devices match, or one device has two limits
  };
  Kind kind;
  std::string sentence;
  std::string stated;  // LimitItem::stated of the items with the error
};
std::vector<DeviceError> errors_in_devices(const LimitMap &limit, const std::vector<DeviceIdentity> &devices);

}  // namespace ration::config

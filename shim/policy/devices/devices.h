// The devices of this process and what it may take on each, asked of the driver once it can answer.
// Layer: policy. Threads: any; driver calls outside the lock, the first finished discovery is published for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lock.h"
#include "driver/functions.h"
#include "events/event.h"
#include "ledger/ledger.h"

namespace ration::policy {

struct DeviceLimit {
  bool asked;
  std::uint64_t bytes;  // effective: never above the device's total
};

// What the first pool of a device takes at once. All in bytes.
struct Preallocation {
  std::uint64_t bytes = 0;     // 0: it grows on demand
  std::uint64_t after = 0;     // once so many are live there
  std::uint64_t headroom = 0;  // of the memory that is really free, to be left alone
  bool exact = false;          // all of it or nothing
};

// A group that this process is to share a limit with.
struct GroupAsked {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;
};

// Where limits come from; the runtime answers from the settings.
class LimitSource {
 public:
  virtual ~LimitSource() = default;
  // Once, with every device, before any limit_on. Answers the lines that the user should read.
  virtual std::vector<std::string> meet(const std::vector<events::DeviceFacts> &devices) = 0;
  virtual DeviceLimit limit_on(const events::DeviceFacts &device) const = 0;
  virtual Preallocation preallocation_on(const events::DeviceFacts &) const { return {}; }
  // The same of mode async, at the first allocation.
  virtual Preallocation async_preallocation_on(const events::DeviceFacts &) const { return {}; }
  // Whether a limit was asked for on any device, known or not.
  virtual bool asked_for() const { return true; }
  // Where the files of groups lie; empty: this process keeps books of its own only.
  virtual std::string state_folder() const { return {}; }
  // The narrowest first.
  virtual std::vector<GroupAsked> groups() const { return {}; }
  // What the group may take on a device, as far as these settings say.
  virtual std::optional<std::uint64_t> group_limit_on(std::size_t, const events::DeviceFacts &) const {
    return std::nullopt;
  }
};

// Asks what limit a device has whose total nobody knows. A size that no total changes can be enforced all the same; a
// share of it cannot: false.
template <class LimitOn, class Limit>
bool without_total(const events::DeviceFacts &device, const LimitOn &limit_on, Limit &limit) {
  events::DeviceFacts guess = device;
  guess.total = std::uint64_t{1} << 60;
  limit = limit_on(guess);
  guess.total <<= 1;
  return limit_on(guess) == limit;
}

struct Device {
  int ordinal = 0;
  CUdevice handle = 0;
  std::string uuid;
  std::string name;
  std::atomic<std::uint64_t> total{0};  // physical bytes; 0: the driver has not told yet
  std::atomic<std::uint64_t> limit{UINT64_MAX};
  std::atomic<bool> limit_asked{false};
};

// What the driver says is free on the current device; nothing where it does not say.
std::optional<std::uint64_t> really_free();

class Devices {
 public:
  Devices(LimitSource &limits, ledger::Ledger &ledger) : limits_(limits), ledger_(ledger) {}
  // Once, before anything else: joins the groups.
  void join_groups();
  ~Devices() { delete devices_.load(std::memory_order_acquire); }
  Devices(const Devices &) = delete;
  Devices &operator=(const Devices &) = delete;

  // Every device, or nullptr while the driver cannot be asked (before cuInit, after a fork).
  const std::vector<Device> *all();
  // The device's record, or nullptr.
  const Device *find(int ordinal);
  const Device *find_handle(CUdevice handle);
  // The ordinal behind a driver handle; a handle that no device has is held to the first one's limit.
  int ordinal_of(CUdevice handle);
  // Learns the size of a device from cuMemGetInfo where cuDeviceTotalMem is missing. REQUIRES a current context on it.
  void learn_total(int ordinal);
  std::vector<events::DeviceFacts> facts();
  Preallocation preallocation_on(int ordinal);
  Preallocation async_preallocation_on(int ordinal);
  // A limit was asked for, and the driver does not say what devices it would hold for.
  bool limit_unknown() { return all() == nullptr && limits_.asked_for(); }

 private:
  bool discover();
  // Answers a line for the user where the limit that was asked for cannot be enforced.
  std::string settle_limit(Device &device, const events::DeviceFacts &facts) const;
  // The same for the groups' limits.
  void enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines);
  std::optional<std::uint64_t> group_limit(std::size_t group, const events::DeviceFacts &facts,
                                           bool &enforceable) const;

  LimitSource &limits_;
  ledger::Ledger &ledger_;
  // As in limits_.groups(), or the one for processes that were given none. Fixed before the first discovery.
  std::vector<ledger::Membership *> groups_;
  bool group_missing_ = false;  // one that was asked for cannot be had
  RankedMutex mutex_{Rank::kDevices};
  std::atomic<std::vector<Device> *> devices_{nullptr};
};

}  // namespace ration::policy

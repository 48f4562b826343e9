// The devices of this process and what it may take on each, discovered as soon as the driver can answer.
// Layer: policy/devices. Threads: any; driver calls outside the lock; the first finished discovery stays.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lock.h"
#include "driver/functions.h"
#include "events/event.h"
#include "events/journal.h"
#include "ledger/ledger.h"

namespace ration::policy {

struct DeviceLimit {
  bool asked;
  std::uint64_t bytes;  // effective: never above the device's total
};

// What the first pool of a device takes at once. All in bytes.
struct Preallocation {
  std::uint64_t bytes = 0;                       // 0: it grows on demand
  std::uint64_t after = 0;                       // as soon as that many are live there
  std::uint64_t headroom = 0;                    // of the really free memory that it leaves alone
  bool leaves_context = false;                   // the headroom is no less than a context takes there
  bool exact = false;                            // all of it or nothing
  bool fair = false;                             // in a group: no more than its part of that
  std::uint64_t granule_bytes = 0;               // of each granule; 0: by its size
  std::uint64_t release_threshold = UINT64_MAX;  // of free memory that the pools of the device keep
};

// A group with which this process shares a limit.
struct GroupAsked {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;
};

// Where limits come from; the runtime answers from the settings.
class LimitSource {
 public:
  virtual ~LimitSource() = default;
  // Once, with every device, before any limit_on. Answers the lines for the user.
  virtual std::vector<std::string> resolve_devices(const std::vector<events::DeviceFacts> &devices) = 0;
  virtual DeviceLimit limit_on(const events::DeviceFacts &device) const = 0;
  virtual Preallocation preallocation_on(const events::DeviceFacts &) const { return {}; }
  // The same of mode async, at the first allocation.
  virtual Preallocation async_preallocation_on(const events::DeviceFacts &) const { return {}; }
  // Whether a limit was asked for on any device, known or not.
  virtual bool asked_for() const { return true; }
  // For people, as "4.00GiB".
  virtual std::string spoken(std::uint64_t bytes) const = 0;
  // The folder of the groups' files; empty: this process has books of its own only.
  virtual std::string state_folder() const { return {}; }
  // The narrowest first.
  virtual std::vector<GroupAsked> groups() const { return {}; }
  // What this process asks to always obtain in its named group; 0: nothing.
  virtual std::uint64_t guarantee_on(const events::DeviceFacts &) const { return 0; }
  // What these settings let the group take on a device.
  virtual std::optional<std::uint64_t> group_limit_on(std::size_t, const events::DeviceFacts &) const {
    return std::nullopt;
  }
};

// The limit of a device whose total is unknown. False: it is a share of the total, and cannot be enforced.
// Design: design/charging.md#unknown-sizes
template <class LimitOn, class Limit>
bool without_total(const events::DeviceFacts &device, const LimitOn &limit_on, Limit &limit) {
  events::DeviceFacts guess = device;
  guess.total = std::uint64_t{1} << 60;
  limit = limit_on(guess);
  guess.total <<= 1;
  return limit_on(guess) == limit;
}

struct Device {
  events::DeviceFacts facts() const;

  int ordinal = 0;
  CUdevice handle = 0;
  std::string uuid;
  std::string name;
  std::atomic<std::uint64_t> total{0};  // physical bytes; 0: not known yet
  std::atomic<std::uint64_t> limit{UINT64_MAX};
  std::atomic<bool> limit_asked{false};
};

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
  // The ordinal of a driver handle; an unknown handle is held to the first device's limit.
  int ordinal_of(CUdevice handle);
  // Learns the size of a device from cuMemGetInfo where cuDeviceTotalMem is missing. REQUIRES a current context on it.
  void learn_total(int ordinal);
  std::string spoken(std::uint64_t bytes) const { return limits_.spoken(bytes); }  // for people
  std::uint64_t total_on(int ordinal);                                             // bytes; 0: not known
  Preallocation preallocation_on(int ordinal, bool async = false);                 // `async`: of mode async
  // Applies what was ordered for this process or its groups while it runs. False: nothing was for the process since it
  // did so last. Touches shared memory.
  bool heed(int ordinal) noexcept {
    ledger_.account(ordinal).look_for_orders();
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const ledger::Membership *group) {
                         return group != nullptr && group->orders() != group->heeded();
                       }) &&
           heed_now();
  }
  // From now on limits that are set while the process runs are in its totals.
  void note_limits_in(events::Journal *journal) { journal_.store(journal, std::memory_order_release); }
  // A limit was asked for, and the driver does not say for which devices.
  // Design: design/first-use.md#no-device-list
  bool limit_unknown() { return all() == nullptr && limits_.asked_for(); }

 private:
  bool discover();
  bool heed_now() noexcept;
  void heed_all(std::vector<Device> &devices);
  void explain_limits();
  // Answers a line for the user where the limit cannot be enforced.
  std::string resolve_limit(Device &device, const events::DeviceFacts &facts) const;
  // A guarantee that was not obtained at once.
  struct Owed {
    int ordinal;
    ledger::Membership *group;
    int place;  // the device's, in the group
    std::uint64_t bytes;
    bool refuses_for_ever = false;  // the account, for another reason
  };
  // Waits briefly for what others hold and do not use; says who holds it where that is in vain.
  void claim(const std::vector<Owed> &owed);
  // The same for the groups' limits.
  void enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines, std::vector<Owed> &owed);

  LimitSource &limits_;
  ledger::Ledger &ledger_;
  // As limits_.groups(), or the one for processes without a group. Fixed before the first discovery.
  std::vector<ledger::Membership *> groups_;
  bool group_missing_ = false;  // one that was asked for cannot be joined
  RankedMutex mutex_{Rank::kDevices};
  std::atomic<std::vector<Device> *> devices_{nullptr};
  std::atomic<bool> heeding_{false};
  std::atomic<events::Journal *> journal_{nullptr};
};

}  // namespace ration::policy

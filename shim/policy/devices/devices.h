// The devices of this process and the limit on each. They are discovered as soon as the driver can be asked. Layer:
// policy/devices. Threads: any; driver calls outside the lock; the discovery that finishes first is kept.
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

// The preallocation of a device's first pool. Sizes are in bytes.
struct Preallocation {
  std::uint64_t bytes = 0;                       // 0: the pool grows on demand
  std::uint64_t after = 0;                       // preallocates once this many bytes are live on the device
  std::uint64_t headroom = 0;                    // free memory that it leaves for others
  bool leaves_context = false;                   // the headroom is at least what a context takes on the device
  bool exact = false;                            // all of `bytes` or nothing
  bool fair = false;                             // in a group: no more than its fair part (Account::fair_part)
  std::uint64_t granule_bytes = 0;               // the size of each granule; 0: derived from the limit
  std::uint64_t release_threshold = UINT64_MAX;  // free memory that the pools of the device keep
};

// A group with which this process shares a limit.
struct GroupAsked {
  ledger::GroupKind kind = ledger::GroupKind::kNone;
  std::string name;
};

// The source of limits. The runtime implements this interface using the settings.
class LimitSource {
 public:
  virtual ~LimitSource() = default;
  // Called once, with all devices, before the first limit_on(). Returns lines for the user.
  virtual std::vector<std::string> resolve_devices(const std::vector<events::DeviceFacts> &devices) = 0;
  virtual DeviceLimit limit_on(const events::DeviceFacts &device) const = 0;
  virtual Preallocation preallocation_on(const events::DeviceFacts &) const { return {}; }
  // The preallocation that mode async makes at the first allocation.
  virtual Preallocation async_preallocation_on(const events::DeviceFacts &) const { return {}; }
  // Whether a limit was asked for on any device, known or unknown.
  virtual bool asked_for() const { return true; }
  // A size in a form for people to read, such as "4.00GiB".
  virtual std::string spoken(std::uint64_t bytes) const = 0;
  // The folder with the groups' files; empty if this process shares no groups.
  virtual std::string state_folder() const { return {}; }
  // The narrowest first.
  virtual std::vector<GroupAsked> groups() const { return {}; }
  // The guarantee that this process asks for in its named group; 0 if it asks for none.
  virtual std::uint64_t guarantee_on(const events::DeviceFacts &) const { return 0; }
  // The limit that these settings set for the group on a device; nullopt if they set none.
  virtual std::optional<std::uint64_t> group_limit_on(std::size_t, const events::DeviceFacts &) const {
    return std::nullopt;
  }
};

// Gets the limit of a device whose total is unknown. False if the limit depends on the total and so cannot be enforced.
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
  // Joins the groups. Called once, before anything else.
  void join_groups();
  ~Devices() { delete devices_.load(std::memory_order_acquire); }
  Devices(const Devices &) = delete;
  Devices &operator=(const Devices &) = delete;

  // All devices, or nullptr while the driver cannot be asked (before cuInit, after a fork).
  const std::vector<Device> *all();
  // The record of a device, or nullptr.
  const Device *find(int ordinal);
  const Device *find_handle(CUdevice handle);
  // The ordinal of a driver handle. An unknown handle counts as the first device, so its limit applies.
  int ordinal_of(CUdevice handle);
  // Gets a device's size from cuMemGetInfo if cuDeviceTotalMem is missing. REQUIRES: one of its contexts is current.
  void learn_total(int ordinal);
  std::string spoken(std::uint64_t bytes) const { return limits_.spoken(bytes); }  // for people to read
  std::uint64_t total_on(int ordinal);                                             // bytes; 0: not known
  Preallocation preallocation_on(int ordinal, bool async = false);                 // `async`: for mode async
  // Applies orders that were given to this process or its groups while it runs (ledger/orders.h). Returns false if
  // there is no new order for the process. Reads shared memory.
  bool heed(int ordinal) noexcept {
    ledger_.account(ordinal).look_for_orders();
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const ledger::Membership *group) {
                         return group != nullptr && group->orders() != group->heeded();
                       }) &&
           heed_now();
  }
  // From now on, limits that are set while the process runs are recorded in the journal's totals.
  void note_limits_in(events::Journal *journal) { journal_.store(journal, std::memory_order_release); }
  // True if a limit was requested but the driver cannot be asked for the devices.
  // Design: design/first-use.md#no-device-list
  bool limit_unknown() { return all() == nullptr && limits_.asked_for(); }

 private:
  bool discover();
  bool heed_now() noexcept;
  void heed_all(std::vector<Device> &devices);
  void explain_limits();
  // Returns a line for the user if the limit cannot be enforced.
  std::string resolve_limit(Device &device, const events::DeviceFacts &facts) const;
  // A guarantee that could not be obtained at once.
  struct Owed {
    int ordinal;
    ledger::Membership *group;
    int place;  // the device's index in the group
    std::uint64_t bytes;
    bool refuses_for_ever = false;  // the account refuses everything anyway for another reason
  };
  // Asks others for memory that they hold and do not use, and waits briefly for it. If the memory does not come, says
  // who holds it.
  void claim(const std::vector<Owed> &owed);
  // Adds a device to the groups and sets the groups' limits on it. Adds lines for the user to `lines`, and guarantees
  // that are still owed to `owed`.
  void enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines, std::vector<Owed> &owed);

  LimitSource &limits_;
  ledger::Ledger &ledger_;
  // In the order of limits_.groups(); last, the group of processes without a group. Fixed before the first discovery.
  std::vector<ledger::Membership *> groups_;
  bool group_missing_ = false;  // a group that was asked for could not be joined
  RankedMutex mutex_{Rank::kDevices};
  std::atomic<std::vector<Device> *> devices_{nullptr};
  std::atomic<bool> heeding_{false};
  std::atomic<events::Journal *> journal_{nullptr};
};

}  // namespace ration::policy

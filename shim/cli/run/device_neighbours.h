// Finds the other processes that hold memory on a device where a run waits for room, and asks for their unused memory.
// Layer: cli. Threads: one. Owns: a membership in each group that it asked for memory, because only a member can ask.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/device_figures.h"
#include "ledger/group_view.h"
#include "ledger/membership.h"

namespace ration::cli {

// A process, or a run that was promised memory. The memory held by the run's processes counts as part of the promise.
struct DeviceHolder {
  int pid = 0;
  std::string program;
  std::uint64_t reserved = 0;
  std::uint64_t idle = 0;       // the part of `reserved` that is neither used nor guaranteed
  std::uint64_t guarantee = 0;  // the full amount, however much of it is taken
  bool is_of_tree = false;      // its guarantee is for the processes that it started
  // For a process: the groups that it is in.
  std::vector<std::pair<ledger::GroupKind, std::string>> groups = {};
  bool is_outside = false;  // it runs outside Ration

  [[nodiscard]] std::uint64_t bytes() const { return reserved > guarantee ? reserved : guarantee; }
};

// The holders of memory on one device, each listed once, the largest first.
std::vector<DeviceHolder> holders_of(const std::vector<ledger::Group> &groups, const std::string &uuid);

// Those of the listed processes that are in this PID namespace but in none of the groups.
std::vector<DeviceHolder> outsiders_among(const std::vector<NvmlHolder> &listed,
                                          const std::vector<ledger::Group> &groups);

// The used bytes of the device that none of these processes holds, including bytes that NVML lists for no process. Each
// process is given as its ID in NVML's namespace and its bytes in our records. Our records count only if NVML does not
// list the process, as in a container. REQUIRES: figures.memory.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<std::pair<int, std::uint64_t>> &processes);
// Like held_outside() above, for the processes that are members of the groups; each counts once.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<ledger::Group> &groups);

// The bytes promised to others on a device but not yet taken, plus `overhead` for each run that has not taken any.
std::uint64_t promised_to_others(const std::vector<ledger::Group> &groups, const std::string &uuid,
                                 std::uint64_t overhead);
bool is_taken(const std::vector<ledger::Group> &groups, const std::string &uuid);

std::string named(const DeviceHolder &holder);  // "train (pid 12)"
// Text for a message: the largest holders, and how many of the device's `used` bytes are held by none of them.
std::string shown_holders(const std::vector<DeviceHolder> &holders, std::uint64_t used);

class IdleMemory {
 public:
  IdleMemory(std::string state_folder, ledger::ProcessIdentity self)
      : folder_(std::move(state_folder)), self_(std::move(self)) {}

  // Asks the holders of idle device memory for `bytes` bytes. If they hold less in all, asks nobody and returns false.
  bool wish(const std::vector<DeviceHolder> &holders, const std::string &uuid, int ordinal, std::uint64_t bytes);

 private:
  const std::string folder_;
  const ledger::ProcessIdentity self_;
  std::map<std::pair<ledger::GroupKind, std::string>, std::unique_ptr<ledger::Membership>> places_;
};

}  // namespace ration::cli

// Finds who else holds memory on a device that a run waits for, and asks them for memory that they do not use.
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

// A process, or a run that was promised memory. Memory that the run's processes hold counts as part of the promise.
struct DeviceHolder {
  int pid = 0;
  std::string program;
  std::uint64_t reserved = 0;
  std::uint64_t idle = 0;       // the part of `reserved` that is neither used nor guaranteed to it
  std::uint64_t guarantee = 0;  // in full, however much of it is taken
  bool is_of_tree = false;      // it holds the guarantee for the processes that it started
  // The groups that it is in, if it is a process.
  std::vector<std::pair<ledger::GroupKind, std::string>> groups = {};
  bool is_outside = false;  // it runs outside Ration

  [[nodiscard]] std::uint64_t bytes() const { return reserved > guarantee ? reserved : guarantee; }
};

// The holders on one device, each once, the largest first.
std::vector<DeviceHolder> holders_of(const std::vector<ledger::Group> &groups, const std::string &uuid);

// The listed processes of this PID namespace that are in none of the groups.
std::vector<DeviceHolder> outsiders_among(const std::vector<NvmlHolder> &listed,
                                          const std::vector<ledger::Group> &groups);

// The used bytes of the device that none of these processes holds, including bytes that NVML lists for no process. Each
// process is given by its ID in NVML's namespace and its bytes in our records. Our records count only if NVML does not
// list the process, as in a container. REQUIRES: figures.memory.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<std::pair<int, std::uint64_t>> &processes);
// The same, with all members of the groups as the processes, each once.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<ledger::Group> &groups);

// The bytes promised to others on a device but not yet taken, plus `overhead` for each run that has taken nothing.
std::uint64_t promised_to_others(const std::vector<ledger::Group> &groups, const std::string &uuid,
                                 std::uint64_t overhead);
bool is_taken(const std::vector<ledger::Group> &groups, const std::string &uuid);

std::string named(const DeviceHolder &holder);  // "train (pid 12)"
// For a message: the largest holders, and how many of the device's `used` bytes none of them holds.
std::string shown_holders(const std::vector<DeviceHolder> &holders, std::uint64_t used);

class IdleMemory {
 public:
  IdleMemory(std::string state_folder, ledger::ProcessIdentity self)
      : folder_(std::move(state_folder)), self_(std::move(self)) {}

  // Asks the processes that hold idle memory there for `bytes` bytes. False if they hold less; then nobody is asked.
  bool wish(const std::vector<DeviceHolder> &holders, const std::string &uuid, int ordinal, std::uint64_t bytes);

 private:
  const std::string folder_;
  const ledger::ProcessIdentity self_;
  std::map<std::pair<ledger::GroupKind, std::string>, std::unique_ptr<ledger::Membership>> places_;
};

}  // namespace ration::cli

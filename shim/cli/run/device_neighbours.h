// Who holds a device's memory besides a run that waits for it, and wishes for what they hold and do not use.
// Layer: cli. Threads: one. Owns: a place in each group in which something was wished for, so that the wish is heard.
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

// A process, or a run to which memory is promised: what that one's processes hold is part of the promise.
struct DeviceHolder {
  int pid = 0;
  std::string program;
  std::uint64_t reserved = 0;
  std::uint64_t idle = 0;                                              // of that: not used, and not guaranteed to it
  std::uint64_t guarantee = 0;                                         // whatever it holds of it
  bool is_of_tree = false;                                             // the guarantee: it holds it for what it started
  std::vector<std::pair<ledger::GroupKind, std::string>> groups = {};  // that a process is in
  bool is_outside = false;                                             // Ration

  [[nodiscard]] std::uint64_t bytes() const { return reserved > guarantee ? reserved : guarantee; }
};

// Those of one device, each once, the largest first.
std::vector<DeviceHolder> holders_of(const std::vector<ledger::Group> &groups, const std::string &uuid);

// The processes of this PID namespace that are in none of the groups.
std::vector<DeviceHolder> outsiders_among(const std::vector<NvmlHolder> &listed,
                                          const std::vector<ledger::Group> &groups);

// What the device holds beyond these processes: for others, and for none that NVML lists. By their IDs there, with what
// the books say, which counts where NVML does not list them, as in a container. REQUIRES: figures.memory.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<std::pair<int, std::uint64_t>> &processes);
// The same of all members, each once.
std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<ledger::Group> &groups);

// What is promised to others on a device and not taken yet; `overhead` for each run that has not begun to take any.
std::uint64_t promised_to_others(const std::vector<ledger::Group> &groups, const std::string &uuid,
                                 std::uint64_t overhead);
bool is_taken(const std::vector<ledger::Group> &groups, const std::string &uuid);

std::string named(const DeviceHolder &holder);  // "train (pid 12)"
// For a message: the largest of them, and what of the bytes that are used on the device none of them holds.
std::string shown_holders(const std::vector<DeviceHolder> &holders, std::uint64_t used);

class IdleMemory {
 public:
  IdleMemory(std::string state_folder, ledger::ProcessIdentity self)
      : folder_(std::move(state_folder)), self_(std::move(self)) {}

  // Tells those that hold idle memory there that so much is lacking. False: they hold less, and nobody was told.
  bool wish(const std::vector<DeviceHolder> &holders, const std::string &uuid, int ordinal, std::uint64_t bytes);

 private:
  const std::string folder_;
  const ledger::ProcessIdentity self_;
  std::map<std::pair<ledger::GroupKind, std::string>, std::unique_ptr<ledger::Membership>> places_;
};

}  // namespace ration::cli

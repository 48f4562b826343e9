// Finds the members of a group that are covered by a guarantee that another member (`ration run`) holds for their tree.
// Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ledger/group_view.h"

namespace ration::cli {

// The identities of the processes in each tree, by the tree's number.
using TreeProcesses = std::map<std::uint64_t, std::set<std::uint64_t>>;
TreeProcesses processes_of_trees(const std::vector<ledger::Group> &groups);

class TreeGuarantees {
 public:
  // REQUIRES: the group outlives this object.
  TreeGuarantees(const ledger::Group &group, const TreeProcesses &processes);

  // The bytes guaranteed to the member on the device of `use`, by its own guarantee or by its tree's.
  [[nodiscard]] std::uint64_t guarantee_of(const ledger::Member &member, const ledger::DeviceUse &use) const;
  // True if the member holds a guarantee on this device for a process that uses the device itself.
  [[nodiscard]] bool is_represented(const ledger::Member &holder, const std::string &uuid) const;
  // True if is_represented() holds on any device.
  [[nodiscard]] bool is_stand_in(const ledger::Member &holder) const;

 private:
  using Place = std::pair<std::uint64_t, std::string>;  // a process's identity and a device's UUID
  std::map<Place, std::uint64_t> guarantees_;           // for processes that a tree's guarantee covers
  std::set<Place> represented_;
};

}  // namespace ration::cli

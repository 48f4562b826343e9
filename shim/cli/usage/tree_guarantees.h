// Which members of a group are covered by the guarantee that another one, `ration run`, holds for their tree.
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

  // What is guaranteed to the member where `use` is: its own, or that of its tree.
  [[nodiscard]] std::uint64_t guarantee_of(const ledger::Member &member, const ledger::DeviceUse &use) const;
  // Whether the member holds a guarantee there for a process that uses the device, too.
  [[nodiscard]] bool is_represented(const ledger::Member &holder, const std::string &uuid) const;
  // The same on any device.
  [[nodiscard]] bool is_stand_in(const ledger::Member &holder) const;

 private:
  using Place = std::pair<std::uint64_t, std::string>;  // identity and device
  std::map<Place, std::uint64_t> guarantees_;           // of the covered
  std::set<Place> represented_;
};

}  // namespace ration::cli

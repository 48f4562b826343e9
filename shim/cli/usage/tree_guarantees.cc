#include "cli/usage/tree_guarantees.h"

#include "ledger/membership.h"

namespace ration::cli {

namespace {

using Holders = std::map<std::uint64_t, const ledger::Member *>;  // by the identity of a process that the holder covers

// For a tree within a tree the inner one counts, which is the one that was started later.
Holders holders_in(const ledger::Group &group, const TreeProcesses &processes) {
  Holders holders;
  for (const ledger::Member &member : group.members) {
    const auto tree = member.tree != 0 ? processes.find(member.tree) : processes.end();
    if (tree == processes.end()) {
      continue;
    }
    for (const std::uint64_t identity : tree->second) {
      const ledger::Member *&holder = holders[identity];
      if (holder == nullptr || holder->start_unix_ns < member.start_unix_ns) {
        holder = &member;
      }
    }
  }
  return holders;
}

std::uint64_t guarantee_on(const ledger::Member &holder, const std::string &uuid) {
  for (const ledger::DeviceUse &use : holder.devices) {
    if (use.uuid == uuid) {
      return use.guarantee;
    }
  }
  return 0;
}

}  // namespace

TreeProcesses processes_of_trees(const std::vector<ledger::Group> &groups) {
  TreeProcesses processes;
  for (const ledger::Group &group : groups) {
    if (const std::uint64_t tree = ledger::tree_number(group.kind, group.name); tree != 0) {
      for (const ledger::Member &member : group.members) {
        processes[tree].insert(member.identity);
      }
    }
  }
  return processes;
}

TreeGuarantees::TreeGuarantees(const ledger::Group &group, const TreeProcesses &processes) {
  const Holders holders = holders_in(group, processes);
  for (const ledger::Member &member : group.members) {
    const auto found = member.tree == 0 ? holders.find(member.identity) : holders.end();
    if (found == holders.end()) {
      continue;
    }
    for (const ledger::DeviceUse &use : member.devices) {
      guarantees_[{member.identity, use.uuid}] = guarantee_on(*found->second, use.uuid);
      represented_.insert({found->second->identity, use.uuid});
    }
  }
}

std::uint64_t TreeGuarantees::guarantee_of(const ledger::Member &member, const ledger::DeviceUse &use) const {
  const auto found = guarantees_.find({member.identity, use.uuid});
  return found != guarantees_.end() ? found->second : use.guarantee;
}

bool TreeGuarantees::is_represented(const ledger::Member &holder, const std::string &uuid) const {
  return holder.tree != 0 && represented_.count({holder.identity, uuid}) != 0;
}

bool TreeGuarantees::is_stand_in(const ledger::Member &holder) const {
  const auto first = represented_.lower_bound({holder.identity, ""});
  return holder.tree != 0 && first != represented_.end() && first->first == holder.identity;
}

}  // namespace ration::cli

#include "cli/run/device_neighbours.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/saturating.h"
#include "cli/base/file_text.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "events/event.h"

namespace ration::cli {

namespace {

constexpr std::size_t kMostHolders = 5;

// The trees whose processes use memory that was promised on the device, with the identity of the promise's holder.
std::map<std::uint64_t, std::uint64_t> promised_trees(const std::vector<ledger::Group> &groups,
                                                      const std::string &uuid) {
  std::map<std::uint64_t, std::uint64_t> trees;
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (member.tree != 0 && use.uuid == uuid && use.guarantee != 0) {
          trees[member.tree] = member.identity;
        }
      }
    }
  }
  return trees;
}

// A process in several groups reports the same figures in each, except for what a guarantee covers.
void add(const ledger::Member &member, const ledger::DeviceUse &use, DeviceHolder &holder) {
  const bool is_new = holder.groups.empty();
  const std::uint64_t idle = minus_or_zero(use.reserved, std::max(use.used, use.covered));
  holder.pid = member.pid;
  holder.program = member.program;
  holder.reserved = std::max(holder.reserved, use.reserved);
  holder.idle = is_new ? idle : std::min(holder.idle, idle);
  holder.guarantee = std::max(holder.guarantee, use.guarantee);
  holder.is_of_tree = member.tree != 0;
}

}  // namespace

std::vector<DeviceHolder> holders_of(const std::vector<ledger::Group> &groups, const std::string &uuid) {
  const std::map<std::uint64_t, std::uint64_t> promised = promised_trees(groups, uuid);
  std::map<std::uint64_t, DeviceHolder> by_identity;
  std::map<std::uint64_t, std::uint64_t> covered;  // processes, and the identity of the holder of their promise
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      if (const auto tree = promised.find(ledger::tree_number(group.kind, group.name)); tree != promised.end()) {
        covered.emplace(member.identity, tree->second);
      }
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == uuid) {
          DeviceHolder &holder = by_identity[member.identity];
          add(member, use, holder);
          holder.groups.emplace_back(group.kind, group.name);
        }
      }
    }
  }
  for (const auto &[process, holder] : covered) {
    if (const auto found = by_identity.find(process); found != by_identity.end()) {
      by_identity[holder].reserved += found->second.reserved;
      by_identity.erase(process);
    }
  }
  std::vector<DeviceHolder> holders;
  for (auto &[process, holder] : by_identity) {
    if (holder.bytes() != 0) {
      holders.push_back(std::move(holder));
    }
  }
  std::sort(holders.begin(), holders.end(),
            [](const DeviceHolder &a, const DeviceHolder &b) { return a.bytes() > b.bytes(); });
  return holders;
}

std::vector<DeviceHolder> outsiders_among(const std::vector<NvmlHolder> &listed,
                                          const std::vector<ledger::Group> &groups) {
  std::vector<DeviceHolder> outsiders;
  std::set<int> members;
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      members.insert(member.pid);
    }
  }
  struct stat own {};
  (void)stat("/proc/self/ns/pid", &own);
  for (const NvmlHolder &each : listed) {
    const std::string folder = "/proc/" + std::to_string(each.pid);
    struct stat space {};
    if (each.bytes == 0 || members.count(each.pid) != 0 || stat((folder + "/ns/pid").c_str(), &space) != 0 ||
        space.st_ino != own.st_ino) {
      continue;
    }
    std::string name = file_text(folder + "/comm").value_or("");
    name.erase(name.find_last_not_of('\n') + 1);  // npos + 1 is 0
    DeviceHolder outsider{each.pid, name, each.bytes};
    outsider.is_outside = true;
    outsiders.push_back(std::move(outsider));
  }
  return outsiders;
}

std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<std::pair<int, std::uint64_t>> &processes) {
  std::uint64_t outside = figures.memory->used;
  for (const auto &[pid, reserved] : processes) {
    const auto is_it = [pid = pid](const NvmlHolder &each) { return each.pid == pid && each.bytes != 0; };
    const auto listed = std::find_if(figures.holders.begin(), figures.holders.end(), is_it);
    outside = minus_or_zero(outside, listed != figures.holders.end() ? listed->bytes : reserved);
  }
  return outside;
}

std::uint64_t held_outside(const DeviceFigures &figures, const std::vector<ledger::Group> &groups) {
  std::map<std::uint64_t, std::pair<int, std::uint64_t>> by_identity;
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == figures.uuid) {
          by_identity[member.identity] = {member.pid, use.reserved};
        }
      }
    }
  }
  std::vector<std::pair<int, std::uint64_t>> processes;
  for (const auto &[identity, process] : by_identity) {
    processes.push_back(process);
  }
  return held_outside(figures, processes);
}

std::uint64_t promised_to_others(const std::vector<ledger::Group> &groups, const std::string &uuid,
                                 std::uint64_t overhead) {
  const auto held_by_tree = [&](std::uint64_t tree) {
    std::uint64_t held = 0;
    for (const ledger::Group &group : groups) {
      if (group.kind == ledger::GroupKind::kTree && ledger::tree_number(ledger::GroupKind::kTree, group.name) == tree) {
        for (const ledger::GroupDevice &device : group.devices) {
          held += device.uuid == uuid ? device.claimed : 0;
        }
      }
    }
    return held;
  };
  std::uint64_t bytes = 0;
  for (const ledger::Group &group : groups) {
    if (group.kind != ledger::GroupKind::kNamed && group.kind != ledger::GroupKind::kQueue) {
      continue;
    }
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == uuid && use.guarantee != 0) {
          const std::uint64_t held = member.tree != 0 ? held_by_tree(member.tree) : use.covered;
          bytes += minus_or_zero(use.guarantee, held) + (member.tree != 0 && held == 0 ? overhead : 0);
        }
      }
    }
  }
  return bytes;
}

bool is_taken(const std::vector<ledger::Group> &groups, const std::string &uuid) {
  return std::any_of(groups.begin(), groups.end(), [&](const ledger::Group &group) {
    return std::any_of(group.devices.begin(), group.devices.end(),
                       [&](const ledger::GroupDevice &device) { return device.uuid == uuid && device.reserved != 0; });
  });
}

std::string named(const DeviceHolder &holder) {
  return config::printable(holder.program) + " (pid " + std::to_string(holder.pid) + ")";
}

std::string shown_holders(const std::vector<DeviceHolder> &holders, std::uint64_t used) {
  std::string text;
  const bool has_outsiders =
      std::any_of(holders.begin(), holders.end(), [](const auto &each) { return each.is_outside; });
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const DeviceHolder &holder = holders[i];
    used -= std::min(used, holder.reserved);
    if (i >= kMostHolders) {
      continue;
    }
    text += (text.empty() ? "; " : ", ") + named(holder) + " ";
    text += holder.reserved != 0 && holder.guarantee >= holder.reserved
                ? "is guaranteed " + config::show_bytes(holder.guarantee)
                : events::held_words(holder.reserved, holder.guarantee, "holds", "keeps", config::show_bytes);
    text += holder.idle != 0 ? " and does not use " + config::show_bytes(holder.idle) + " of it" : "";
    text += holder.is_of_tree ? " for what it started" : holder.is_outside ? " without Ration" : "";
  }
  if (used != 0) {
    text += (text.empty() ? "; " : ", and ") + config::show_bytes(used) + " are the driver's" +
            (has_outsiders ? "" : " or of programs without Ration");
  }
  return text;
}

bool IdleMemory::wish(const std::vector<DeviceHolder> &holders, const std::string &uuid, int ordinal,
                      std::uint64_t bytes) {
  std::uint64_t idle = 0;
  std::set<std::pair<ledger::GroupKind, std::string>> groups;
  for (const DeviceHolder &holder : holders) {
    if (holder.idle != 0) {
      idle += holder.idle;
      groups.insert(holder.groups.front());  // a process listens to such requests in any of its groups
    }
  }
  if (idle < bytes) {
    return false;
  }
  for (const auto &group : groups) {
    std::unique_ptr<ledger::Membership> &place = places_[group];
    std::string problem;  // a group that cannot be joined is not asked
    if (place == nullptr) {
      place = ledger::Membership::join(folder_, group.first, group.second, self_, problem);
    }
    if (const int device = place != nullptr ? place->device(uuid, ordinal) : -1; device >= 0) {
      place->want(device, bytes);
    }
  }
  return true;
}

}  // namespace ration::cli

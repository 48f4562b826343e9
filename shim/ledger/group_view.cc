#include "ledger/group_view.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/saturating.h"
#include "ledger/device_key.h"
#include "ledger/export_file.h"
#include "ledger/group_file.h"
#include "ledger/membership.h"
#include "ledger/part_socket.h"
#include "ledger/totals.h"

namespace ration::ledger {
namespace {

constexpr std::uint64_t kReclaimNs = 1'000'000'000;
constexpr std::uint64_t kQuickReclaimNs = 50'000'000;
constexpr int kReadings = 100;

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int copy = dup(folder);
  std::unique_ptr<DIR, int (*)(DIR *)> stream(copy >= 0 ? fdopendir(copy) : nullptr, &closedir);
  if (stream == nullptr) {
    if (copy >= 0) {
      close(copy);
    }
    return names;
  }
  rewinddir(stream.get());
  while (const dirent *entry = readdir(stream.get())) {
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What a living member claims, read between two of its operations.
std::uint64_t claimed_by(const GroupFile &file, std::uint32_t device, std::uint32_t slot) {
  LastOperation last;
  for (int i = 0; i < kReadings; ++i) {
    last = last_operation(file, device, slot, file.header().device[device].total.load());
    if (last_operation(file, device, slot, file.header().device[device].total.load()).operation == last.operation) {
      break;
    }
  }
  return last.claimed;
}

DeviceUse use_of(const GroupFile &file, std::uint32_t device, std::uint32_t slot, const std::string &uuid) {
  const shared::Cell &cell = file.slot(slot).cells[device];
  DeviceUse use;
  use.uuid = uuid;
  use.reserved = held_of(cell, claimed_by(file, device, slot));
  use.used = cell.used.load(std::memory_order_relaxed);
  use.peak_used = std::max(use.used, cell.peak_used.load(std::memory_order_relaxed));
  // Used memory was also reserved, even between two publications.
  use.peak = std::max({use.reserved, use.peak_used, cell.peak.load(std::memory_order_relaxed)});
  use.limit = cell.limit.load(std::memory_order_relaxed);
  const std::uint64_t stated = cell.stated.load(std::memory_order_relaxed);
  use.group_limit = stated == 0 ? kNoLimit : stated - 1;
  use.allocations = cell.allocations.load(std::memory_order_relaxed);
  for (std::size_t reason = 0; reason < use.failures.size(); ++reason) {
    use.failures[reason] = cell.failures[reason].load(std::memory_order_relaxed);
  }
  use.stitching = shared::PackedStitching::of(cell.stitching.load(std::memory_order_relaxed));
  use.guarantee = cell.guarantee.load(std::memory_order_relaxed);
  use.covered = cell.covered.load(std::memory_order_relaxed);
  use.waiting = cell.waiting.load(std::memory_order_relaxed);
  use.published_unix_ns = cell.published_unix_ns.load(std::memory_order_relaxed);
  return use;
}

std::optional<Member> member_of(const GroupFile &file, std::uint32_t index,
                                const std::vector<std::pair<std::uint32_t, std::string>> &devices) {
  const shared::Slot &slot = file.slot(index);
  const std::uint64_t life = slot.life.load(std::memory_order_acquire);
  if ((life & 1) == 0) {
    return std::nullopt;
  }
  Member member;
  member.identity = slot.identity.load(std::memory_order_relaxed);
  member.pid = slot.pid.load(std::memory_order_relaxed);
  member.uid = slot.uid.load(std::memory_order_relaxed);
  member.pid_namespace = slot.pid_namespace.load(std::memory_order_relaxed);
  member.start_unix_ns = slot.start_unix_ns.load(std::memory_order_relaxed);
  member.tree = slot.tree.load(std::memory_order_relaxed);
  member.ticket = slot.ticket.load(std::memory_order_relaxed);
  member.program.assign(slot.program, strnlen(slot.program, sizeof(slot.program)));
  for (const auto &[device, uuid] : devices) {
    if (slot.cells[device].touched.load(std::memory_order_relaxed) == 1) {
      member.devices.push_back(use_of(file, device, index, uuid));
    }
  }
  if (slot.life.load(std::memory_order_acquire) != life) {
    return std::nullopt;  // the slot has another owner now
  }
  return member;
}

void read_group(const GroupFile &file, Group &group) {
  std::vector<std::pair<std::uint32_t, std::string>> devices;
  for (std::uint32_t i = 0; i < shared::kDevices; ++i) {
    const shared::Device &device = file.header().device[i];
    const WideValue key = device.uuid.load();
    if (key.low != 0 || key.high != 0) {
      check_limit(file, i);
      devices.emplace_back(i, device_text(key));
      group.devices.push_back({devices.back().second, device.limit.load().low, 0, device.total.load().low,
                               device.physical.load(std::memory_order_relaxed)});
    }
  }
  for (std::uint32_t i = 0; i < file.slots(); ++i) {
    if (std::optional<Member> member = member_of(file, i, devices)) {
      for (const DeviceUse &use : member->devices) {
        const auto of_use = std::find_if(group.devices.begin(), group.devices.end(),
                                         [&](const GroupDevice &each) { return each.uuid == use.uuid; });
        if (of_use != group.devices.end()) {
          of_use->reserved += use.reserved;
        }
      }
      group.members.push_back(std::move(*member));
    }
  }
}

// The file of processes without a group has every process as a member. Removes from it those that are in a group too.
void leave_ungrouped(std::vector<Group> &groups) {
  std::set<std::uint64_t> grouped;
  for (const Group &group : groups) {
    for (const Member &member : group.members) {
      if (group.kind != GroupKind::kNone && group.kind != GroupKind::kQueue) {
        grouped.insert(member.identity);
      }
    }
  }
  for (Group &group : groups) {
    if (group.kind != GroupKind::kNone) {
      continue;
    }
    std::erase_if(group.members, [&](const Member &member) { return grouped.count(member.identity) != 0; });
    for (GroupDevice &device : group.devices) {
      device.reserved = 0;
      for (const Member &member : group.members) {
        for (const DeviceUse &use : member.devices) {
          device.reserved += use.uuid == device.uuid ? use.reserved : 0;
        }
      }
      device.claimed = device.reserved;
    }
  }
  std::erase_if(groups, [](const Group &group) {
    return group.kind == GroupKind::kNone && group.members.empty() && group.problem.empty();
  });
}

// False: the group had no members and its file was removed.
bool read_or_remove(int folder, const std::string &name, Group &group) {
  const Descriptor descriptor = open_group_file(folder, name, group.problem);
  if (!descriptor) {
    return !group.problem.empty();
  }
  const GroupFile file = GroupFile::map(descriptor.number(), group.problem);
  if (!file) {
    return true;
  }
  std::uint32_t cursor = 0;
  reap(file, descriptor.number(), kNoSlot, now_ns() + kReclaimNs, cursor);
  read_group(file, group);
  return !group.members.empty() || !remove_if_dead(folder, name);
}

}  // namespace

std::vector<Group> read_groups(const std::string &state_folder, std::string &problem) {
  std::vector<Group> groups;
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  if (!folder) {
    problem = problem.empty() ? "" : state_folder + ": " + problem;
    return groups;
  }
  for (const std::string &name : names_in(folder.number())) {
    Group group;
    if (is_temporary_name(name) || is_export_file(name)) {
      remove_if_dead(folder.number(), name);
    } else if (is_part_socket(name)) {
      remove_socket_of_dead(folder.number(), name);
    } else if (group_of_file(name, group.kind, group.name) && read_or_remove(folder.number(), name, group)) {
      if (!group.problem.empty()) {
        group.problem = state_folder + "/" + name + ": " + group.problem;
      }
      groups.push_back(std::move(group));
    }
  }
  leave_ungrouped(groups);
  std::stable_sort(groups.begin(), groups.end(), [](const Group &a, const Group &b) { return a.kind < b.kind; });
  return groups;
}

namespace {

// Maps the group's file, after a quick search for dead members.
GroupFile read_file(const std::string &state_folder, GroupKind kind, const std::string &name) {
  std::string problem;
  const Descriptor folder = open_state_folder(state_folder, false, problem);
  const Descriptor descriptor =
      folder ? open_group_file(folder.number(), file_name(kind, name), problem) : Descriptor();
  GroupFile file = descriptor ? GroupFile::map(descriptor.number(), problem) : GroupFile();
  if (file) {
    std::uint32_t cursor = 0;
    reap(file, descriptor.number(), kNoSlot, now_ns() + kQuickReclaimNs, cursor);
  }
  return file;
}

// The index of a device in `file`; shared::kDevices if it is not there.
std::uint32_t place_of(const GroupFile &file, const std::string &uuid) {
  const WideValue wanted = device_key(uuid, 0);
  std::uint32_t place = 0;
  for (; file && place < shared::kDevices; ++place) {
    const WideValue key = file.header().device[place].uuid.load();
    if (key.low == wanted.low && key.high == wanted.high) {
      return place;
    }
  }
  return shared::kDevices;
}

}  // namespace

std::optional<GroupDevice> read_group_device(const std::string &state_folder, GroupKind kind, const std::string &name,
                                             const std::string &uuid) {
  const GroupFile file = read_file(state_folder, kind, name);
  const std::uint32_t place = place_of(file, uuid);
  if (place == shared::kDevices) {
    return std::nullopt;
  }
  check_limit(file, place);
  const shared::Device &device = file.header().device[place];
  const std::uint64_t claimed = device.total.load().low;
  bool has_members = false;  // else the limit is that of a group that has ended
  for (std::uint32_t i = 0; i < file.slots() && !has_members; ++i) {
    has_members = file.slot(i).is_owned();
  }
  return GroupDevice{uuid, has_members ? device.limit.load().low : kNoLimit, claimed, claimed};
}

std::uint64_t left_of_guarantee(const std::string &state_folder, const std::string &group,
                                const std::vector<std::string> &trees, const std::string &uuid) {
  const GroupFile file = trees.empty() ? GroupFile() : read_file(state_folder, GroupKind::kNamed, group);
  const std::uint32_t place = place_of(file, uuid);
  if (place == shared::kDevices) {
    return 0;
  }
  for (const std::string &tree : trees) {
    for (std::uint32_t i = 0; i < file.slots(); ++i) {
      const shared::Slot &slot = file.slot(i);
      if (slot.is_owned() && slot.tree.load(std::memory_order_relaxed) == tree_number(GroupKind::kTree, tree)) {
        const std::uint64_t guarantee = slot.cells[place].guarantee.load(std::memory_order_relaxed);
        const std::uint64_t held =
            read_group_device(state_folder, GroupKind::kTree, tree, uuid).value_or(GroupDevice{}).claimed;
        return minus_or_zero(guarantee, held);
      }
    }
  }
  return 0;
}

}  // namespace ration::ledger

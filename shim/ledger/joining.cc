// Joining: how a process gets its slot in a group's file.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/clock.h"
#include "base/file_identity.h"
#include "base/fork_exclusion.h"
#include "base/wait.h"
#include "ledger/join_descriptor.h"
#include "ledger/kill_points.h"
#include "ledger/life_byte.h"
#include "ledger/life_probe.h"
#include "ledger/membership.h"
#include "ledger/process_end.h"
#include "ledger/totals.h"

namespace ration::ledger {

using shared::Cell;
using shared::Slot;

namespace {

constexpr std::uint64_t kJoinNs = 100'000'000;
// How long to retry a join that a fork overlapped, before accepting one. On a busy machine the fork of a large process
// takes some tenths of a second.
constexpr std::uint64_t kForksNs = 10 * kJoinNs;
// on a busy machine one try may take all the time, and the first may do no more than make the file
constexpr int kLeastTries = 10;

// The result of one try to get a slot.
struct Try {
  std::uint32_t slot = kNoSlot;
  bool again = false;   // the file was removed, or is about to be
  std::string problem;  // if not empty: no try can succeed
};

// REQUIRES: the caller holds the slot's life byte.
void take(const GroupFile &file, std::uint32_t index, const ProcessIdentity &process, std::uint64_t tree) {
  Slot &slot = file.slot(index);
  const std::uint64_t life = slot.life.load(std::memory_order_acquire);
  if ((life & 1) != 0) {
    recompute_limits(file, reclaim_dead_owner(file, index, life));
  }
  for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
    Cell &cell = slot.cells[device];
    const WideValue total = file.header().device[device].total.load();
    at(KillPoint::kApplied);
    cell.applied.store(
        std::max(cell.applied.load(std::memory_order_acquire), last_operation(file, device, index, total).operation),
        std::memory_order_release);
    at(KillPoint::kClear);
    cell.stated.store(0, std::memory_order_relaxed);
    cell.limit.store(kNoLimit, std::memory_order_relaxed);
    for (shared::Word *word : {&cell.used, &cell.peak, &cell.allocations, &cell.published_unix_ns, &cell.touched,
                               &cell.stitching, &cell.guarantee, &cell.covered, &cell.ordered_limit,
                               &cell.ordered_guarantee, &cell.waiting, &cell.peak_used}) {
      word->store(0, std::memory_order_relaxed);
    }
    for (shared::Word &failures : cell.failures) {
      failures.store(0, std::memory_order_relaxed);
    }
  }
  at(KillPoint::kName);
  slot.identity.store(process.identity, std::memory_order_relaxed);
  slot.start_unix_ns.store(process.start_unix_ns, std::memory_order_relaxed);
  slot.pid_namespace.store(process.pid_namespace, std::memory_order_relaxed);
  slot.pid.store(process.pid, std::memory_order_relaxed);
  slot.uid.store(process.uid, std::memory_order_relaxed);
  slot.tree.store(tree, std::memory_order_relaxed);
  slot.ticket.store(0, std::memory_order_relaxed);
  slot.heeded.store(slot.orders.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::memset(slot.program, 0, sizeof(slot.program));
  process.program.copy(slot.program, sizeof(slot.program) - 1);
  at(KillPoint::kLive);
  slot.life.fetch_add(1, std::memory_order_acq_rel);
  at(KillPoint::kJoined);
}

// No slot reaches such operation numbers, so the file was overwritten. The numbers would soon wrap around, and later
// ones would be taken for older ones.
bool is_damaged(const GroupFile &file, std::uint32_t index) {
  constexpr std::uint64_t kMostOperations = std::uint64_t{1} << 47;
  const Cell(&cells)[shared::kDevices] = file.slot(index).cells;
  return std::any_of(std::begin(cells), std::end(cells),
                     [](const Cell &cell) { return cell.applied.load(std::memory_order_relaxed) >= kMostOperations; });
}

Try lock_slot(int descriptor, std::uint32_t index) {
  at(KillPoint::kSlotLock);
  switch (lock_life(descriptor, index)) {
    case LifeLock::taken:
      return {index, false, {}};
    case LifeLock::removing:
      return {kNoSlot, true, {}};
    case LifeLock::failed:
      return {kNoSlot, false, "its file system has no open-file-description locks"};
    case LifeLock::held:
      break;
  }
  return {};
}

// Prefers a free slot to a new one. When none is free and the number of slots is a power of two, from 64 on, searches
// for dead owners first.
Try find_slot(const GroupFile &file, int descriptor, int probe, std::uint64_t random) {
  const auto free_one = [&]() -> Try {
    for (std::uint32_t i = 0; i < file.slots(); ++i) {
      if (!file.slot(i).is_owned()) {
        Try locked = lock_slot(descriptor, i);
        if (locked.slot != kNoSlot && file.slot(i).is_owned()) {  // another process took it and died since
          locked.slot = kNoSlot;
          unlock_life(descriptor, i);
        }
        if (locked.slot != kNoSlot || locked.again || !locked.problem.empty()) {
          return locked;
        }
      }
    }
    return {};
  };
  Try found = free_one();
  const std::uint32_t slots = file.slots();
  const bool worth_looking = slots >= 64 && (slots & (slots - 1)) == 0;
  if (found.slot != kNoSlot || found.again || !found.problem.empty()) {
    return found;
  }
  if (worth_looking) {
    // Starts at a random slot: the search may run out of time, and the next process should not search the same slots.
    auto cursor = static_cast<std::uint32_t>(random % slots);
    reap(file, probe, kNoSlot, now_ns() + kJoinNs / 2, cursor);
    found = free_one();
  }
  for (std::uint32_t i = file.slots(); i < shared::kSlots && found.slot == kNoSlot && !found.again; ++i) {
    found = lock_slot(descriptor, i);
    if (!found.problem.empty()) {
      return found;
    }
    if (found.slot != kNoSlot && !grow(file, descriptor, i)) {
      return {kNoSlot, false,
              "no space for another process: " + error_text(errno) + "; set RATION_STATE_DIR to another folder"};
    }
  }
  if (found.slot == kNoSlot && !found.again) {
    found.problem = "it already has " + std::to_string(shared::kSlots) + " processes";
  }
  return found;
}

}  // namespace

std::string file_name(GroupKind kind, const std::string &name) {
  switch (kind) {
    case GroupKind::kNamed:
      return "group-" + name;
    case GroupKind::kTree:
      return "tree-" + name;
    case GroupKind::kQueue:
      return "queue";
    case GroupKind::kContainer:
      return "container-" + name;
    case GroupKind::kNone:
      break;
  }
  return "ungrouped";
}

bool group_of_file(const std::string &file, GroupKind &kind, std::string &name) {
  const auto has_prefix = [&](const std::string &mark) {
    const bool fits = file.size() > mark.size() && file.compare(0, mark.size(), mark) == 0;
    name = fits ? file.substr(mark.size()) : "";
    return fits;
  };
  kind = file == "ungrouped" ? GroupKind::kNone : file == "queue" ? GroupKind::kQueue : GroupKind::kNamed;
  if (kind != GroupKind::kNamed || has_prefix("group-")) {
    return true;
  }
  kind = GroupKind::kTree;
  if (has_prefix("tree-")) {
    return true;
  }
  kind = GroupKind::kContainer;
  return has_prefix("container-");
}

std::uint64_t tree_number(GroupKind kind, const std::string &name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  return kind == GroupKind::kTree && is_number ? number : 0;
}

std::string container_group_name(const std::string &stated) {
  return std::to_string(this_pid_namespace()) + "-" + stated;
}

std::string group_label(GroupKind kind, const std::string &name) {
  switch (kind) {
    case GroupKind::kNamed:
      return "group '" + name + "'";
    case GroupKind::kTree:
      return "process tree " + name;
    case GroupKind::kQueue:
      return "the queue";
    case GroupKind::kContainer:
      return "container " + name;
    case GroupKind::kNone:
      break;
  }
  return "processes without a group";
}

namespace {

struct Joined {
  GroupFile file;
  Try found;
  bool in_folder = false;  // the problem concerns the folder, not the file
  bool beside_fork = false;
  LifeProbe probe;
  GuaranteeHolder holder;
};

// Finds the slot that holds the guarantee of the innermost tree that has one, and takes a shared lock on its life byte.
GuaranteeHolder share_holder(const GroupFile &file, int descriptor, int probe, std::uint32_t own,
                             const std::vector<std::uint64_t> &trees) {
  for (const std::uint64_t tree : trees) {
    for (std::uint32_t i = 0; i < file.slots(); ++i) {
      const Slot &slot = file.slot(i);
      const std::uint64_t life = slot.life.load(std::memory_order_acquire);
      if (i != own && (life & 1) != 0 && slot.tree.load(std::memory_order_relaxed) == tree && is_alive(probe, i) &&
          share_life(descriptor, i) == LifeLock::taken && slot.life.load(std::memory_order_acquire) == life) {
        return {tree, i, life};
      }
    }
  }
  return {};
}

// One try to open the file and to lock a slot, without a fork meanwhile that would inherit the descriptors.
Joined open_and_lock(const std::string &state_folder, GroupKind kind, const std::string &group, std::uint64_t random,
                     std::uint64_t beside_forks_ns, const Trees &trees) {
  const std::string group_file = file_name(kind, group);
  Joined joined;
  Try &found = joined.found;
  const ForkExclusion exclusion(beside_forks_ns);
  const Descriptor folder = open_state_folder(state_folder, true, found.problem);
  if (!folder) {
    joined.in_folder = true;
    return joined;
  }
  JoinDescriptor opened;
  opened.take(open_group_file(folder.number(), group_file, found.problem));
  Descriptor probe = opened ? open_group_file(folder.number(), group_file, found.problem)
                            : Descriptor();  // with a description of its own
  if (!probe) {
    found.again =
        found.problem.empty() && (opened || make_group_file(folder.number(), group_file, group, found.problem));
    return joined;
  }
  joined.file = GroupFile::map(opened.number(), found.problem);
  if (!joined.file) {
    return joined;
  }
  // No lock is released between, so that processes that join at once do not turn each other away for ever. While all
  // are held no process can join, so only plain stores are made meanwhile.
  const bool begins_anew = joined.file.slots() != 0 && remembers(joined.file) &&
                           is_dead(probe.number(), 0, shared::kSlots) &&
                           lock_all_lives(opened.number()) == LifeLock::taken;
  if (begins_anew) {
    forget(joined.file);
    found.slot = 0;
    unlock_other_lives(opened.number(), found.slot);
    for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
      check_limit(joined.file, device);
    }
  } else {
    found = find_slot(joined.file, opened.number(), probe.number(), random);
  }
  if (found.slot != kNoSlot && is_damaged(joined.file, found.slot)) {
    found.problem = "it is damaged; let the group's processes end and remove it";
  }
  joined.beside_fork = exclusion.failed() && now_ns() < beside_forks_ns;
  if (found.slot != kNoSlot && (joined.beside_fork || !has_name(opened.number(), folder.number(), group_file))) {
    unlock_life(opened.number(), found.slot);  // explicitly, because a forked child may have the descriptor too
    found = {kNoSlot, true, {}};
  }
  if (found.slot != kNoSlot) {
    joined.holder = share_holder(joined.file, opened.number(), probe.number(), found.slot, trees.within);
    if (trees.held_for != 0) {  // shared, so that processes of the tree can keep the slot too
      (void)share_life(opened.number(), found.slot);
    }
  }
  FileIdentity identity;
  (void)identify(opened.number(), identity);
  opened.close();  // from now on only the mapping can keep the lock
  if (found.slot != kNoSlot && is_dead(probe.number(), found.slot)) {
    found = {kNoSlot, false, kLosesLocks};
  }
  joined.probe = LifeProbe(state_folder + "/" + group_file, identity);
  if (found.slot != kNoSlot && kind != GroupKind::kNone) {  // processes without a group wait for no memory
    joined.probe.keep(std::move(probe));
  }
  return joined;
}

}  // namespace

std::unique_ptr<Membership> Membership::join(const std::string &state_folder, GroupKind kind, const std::string &name,
                                             const ProcessIdentity &process, std::string &problem, const Trees &trees) {
  const std::string path = state_folder + "/" + file_name(kind, name);
  const std::uint64_t begun = now_ns();
  int tries = 0;
  Waiter waiter;
  for (bool beside_fork = false; tries < kLeastTries || beside_fork || now_ns() - begun < kJoinNs; ++tries) {
    Joined joined = open_and_lock(state_folder, kind, name, process.identity, begun + kForksNs, trees);
    const Try &found = joined.found;
    if (!found.problem.empty()) {
      problem = (joined.in_folder ? state_folder : path) + ": " + found.problem;
      if (joined.in_folder && problem.find("RATION_STATE_DIR") == std::string::npos) {
        problem += "; set RATION_STATE_DIR to another folder";
      }
      return nullptr;
    }
    if (found.slot != kNoSlot) {
      take(joined.file, found.slot, process, trees.held_for);
      return std::unique_ptr<Membership>(
          new Membership(std::move(joined.file), found.slot, kind, name, std::move(joined.probe), joined.holder));
    }
    beside_fork = joined.beside_fork;
    waiter.pause();
  }
  problem = path + ": its folder keeps no file with that name, or a process that is stopped is removing it";
  return nullptr;
}

}  // namespace ration::ledger

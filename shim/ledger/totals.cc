#include "ledger/totals.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "base/clock.h"
#include "base/saturating.h"
#include "ledger/kill_points.h"
#include "ledger/life_byte.h"

namespace ration::ledger {

using shared::Cell;
using shared::Slot;
using shared::Tag;

namespace {

constexpr std::uint64_t kReapMark = 1;

// The number after `operation`, without the mark.
std::uint64_t next_operation(std::uint64_t operation) {
  return ((operation >> 1) + 1) << 1;
}

std::uint64_t claimed_after(const Cell &cell, std::uint64_t operation) {
  return (operation & kReapMark) != 0 ? 0 : cell.claimed[operation >> 1 & 1].load(std::memory_order_acquire);
}

// The smallest limit that an owned slot states; kNoLimit if none does.
std::uint64_t smallest_stated(const GroupFile &file, std::uint32_t device) {
  std::uint64_t smallest = kNoLimit;
  for (std::uint32_t i = 0; i < file.slots(); ++i) {
    const Slot &slot = file.slot(i);
    if (slot.is_owned()) {
      const std::uint64_t stated = slot.cells[device].stated.load(std::memory_order_acquire);
      smallest = stated == 0 ? smallest : std::min(smallest, stated - 1);
    }
  }
  return smallest;
}

}  // namespace

std::uint64_t stated_limit(const GroupFile &file, std::uint32_t device) {
  // Read first: a limit is left before the slot of its member is freed, so a reader that misses the one sees the other.
  const std::uint64_t smallest = smallest_stated(file, device);
  const std::uint64_t left = file.header().device[device].left.load(std::memory_order_acquire);
  return smallest == kNoLimit && left != 0 ? left - 1 : smallest;
}

namespace {

std::uint64_t limit_of(const GroupFile &file, std::uint32_t device) {
  const std::uint64_t ordered = file.header().device[device].ordered.load(std::memory_order_acquire);
  return ordered != 0 ? ordered - 1 : stated_limit(file, device);
}

// The limit of a group must not end with the member that stated it, because the others could then take the device.
// `before` was loaded when the dead owner of a slot had not lost it.
void leave_limit(const GroupFile &file, std::uint32_t device, std::uint64_t before) {
  const std::uint64_t smallest = smallest_stated(file, device);
  if (smallest != kNoLimit) {  // else another process has freed the slot
    std::uint64_t expected = before;
    file.header().device[device].left.compare_exchange_strong(expected, 1 + smallest, std::memory_order_acq_rel);
  }
}

}  // namespace

// REQUIRES: `total` was read before this call. An operation is noted in its slot before its tag leaves the total.
LastOperation last_operation(const GroupFile &file, std::uint32_t device, std::uint32_t slot, WideValue total) {
  const Cell &cell = file.slot(slot).cells[device];
  const Tag tag = Tag::of(total.high);
  LastOperation last;
  last.operation = cell.applied.load(std::memory_order_acquire);
  if (tag.slot == slot) {
    last.operation = std::max(last.operation, tag.operation);
  }
  last.claimed = claimed_after(cell, last.operation);
  return last;
}

std::uint64_t held_of(const Cell &cell, std::uint64_t claimed) {
  const std::uint64_t guarantee = cell.guarantee.load(std::memory_order_relaxed);
  return minus_or_zero(claimed, guarantee) + cell.covered.load(std::memory_order_relaxed);
}

void note_applied(const GroupFile &file, std::uint32_t device, Tag tag) {
  if (tag.slot >= file.slots()) {
    return;  // no operation yet, or garbage
  }
  std::atomic<std::uint64_t> &applied = file.slot(tag.slot).cells[device].applied;
  std::uint64_t before = applied.load(std::memory_order_acquire);
  if (before >= tag.operation) {
    return;
  }
  at(KillPoint::kNote);
  while (before < tag.operation && !applied.compare_exchange_weak(before, tag.operation, std::memory_order_acq_rel)) {
  }
}

DeviceSet reclaim_dead_owner(const GroupFile &file, std::uint32_t slot, std::uint64_t life) {
  Slot &dead = file.slot(slot);
  DeviceSet stated = 0;
  for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
    WideWord &word = file.header().device[device].total;
    std::uint64_t left = 0;
    for (;;) {
      left = file.header().device[device].left.load(std::memory_order_acquire);
      const WideValue total = word.load();
      // Checked after the load: if the slot was freed before the load, these values are stale; if after, the exchange
      // fails.
      if (dead.life.load(std::memory_order_acquire) != life) {
        return stated;
      }
      const LastOperation last = last_operation(file, device, slot, total);
      if (last.claimed == 0) {
        break;
      }
      if (Tag::of(total.high).slot != slot) {
        note_applied(file, device, Tag::of(total.high));
      }
      const Tag tag{slot, next_operation(last.operation) | kReapMark};
      at(KillPoint::kReapTime);
      file.header().device[device].last_reap_ns.store(now_ns(), std::memory_order_relaxed);
      at(KillPoint::kReapTotal);
      if (word.exchange(total, {minus_or_zero(total.low, last.claimed), tag.packed()})) {
        break;
      }
    }
    if (dead.cells[device].stated.load(std::memory_order_relaxed) != 0) {
      leave_limit(file, device, left);
      stated |= DeviceSet{1} << device;
    }
  }
  at(KillPoint::kReapLife);
  std::uint64_t expected = life;
  dead.life.compare_exchange_strong(expected, (life | 1) + 1, std::memory_order_acq_rel);
  at(KillPoint::kReaped);
  return stated;
}

void recompute_limit(const GroupFile &file, std::uint32_t device) {
  WideWord &word = file.header().device[device].limit;
  for (;;) {
    const WideValue before = word.load();
    const std::uint64_t now = limit_of(file, device);
    // Exchanged even if the limit stays the same: the new count makes the exchange of every earlier reader fail.
    // Without that, such a reader could set a limit that ignores what this process has just stated or ordered.
    at(KillPoint::kLimit);
    if (word.exchange(before, {now, before.high + 1})) {
      return;
    }
  }
}

void recompute_limits(const GroupFile &file, DeviceSet devices) {
  for (; devices != 0; devices &= devices - 1) {
    recompute_limit(file, static_cast<std::uint32_t>(std::countr_zero(devices)));
  }
}

void check_limit(const GroupFile &file, std::uint32_t device) {
  // A correct limit is not exchanged: that would make all refused processes retry because of each other.
  const std::uint64_t limit = file.header().device[device].limit.load().low;
  if (limit != kNoLimit && limit != limit_of(file, device)) {
    recompute_limit(file, device);
  }
}

void wake_sleepers(const GroupFile &file) {
  syscall(SYS_futex, &file.header().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ring(const GroupFile &file) {
  file.header().bell.fetch_add(1, std::memory_order_release);
  wake_sleepers(file);
}

Reaping reap(const GroupFile &file, int probe, std::uint32_t own_slot, std::uint64_t deadline_ns,
             std::uint32_t &cursor) {
  Reaping result;
  const std::uint32_t slots = file.slots();
  DeviceSet stated = 0;
  std::uint32_t asked = 0;
  for (std::uint32_t looked = 0; looked < slots && result.whole; ++looked) {
    const std::uint32_t index = (cursor + looked) % slots;
    const std::uint64_t life = file.slot(index).life.load(std::memory_order_acquire);
    if ((life & 1) == 0 || index == own_slot) {
      continue;
    }
    // checks its own byte too: another thread may have given the number to another file, in which nothing is locked
    if (is_dead(probe, index) && (own_slot >= slots || is_alive(probe, own_slot))) {
      stated |= reclaim_dead_owner(file, index, life);
      result.found = true;
    }
    if (++asked % 16 == 0 && now_ns() > deadline_ns) {
      cursor = index + 1;
      result.whole = false;
    }
  }
  recompute_limits(file, stated);  // once for all devices, because it reads every slot
  return result;
}

bool remembers(const GroupFile &file) {
  return std::any_of(std::begin(file.header().device), std::end(file.header().device),
                     [](const shared::Device &device) {
                       return device.limit.load().low != kNoLimit || device.left.load(std::memory_order_acquire) != 0 ||
                              device.ordered.load(std::memory_order_acquire) != 0;
                     });
}

void forget(const GroupFile &file) {
  file.header().random.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
    for (std::uint32_t i = 0; i < file.slots(); ++i) {
      file.slot(i).cells[device].stated.store(0, std::memory_order_release);
    }
    file.header().device[device].left.store(0, std::memory_order_release);
    file.header().device[device].ordered.store(0, std::memory_order_release);
  }
}

}  // namespace ration::ledger

// The rules by which the total of a device changes. The rules keep the total exact even if a process dies at any point.
// Layer: ledger. Threads, and processes: as each function says; no process ever waits for another.
// Design: design/ledger.md#exact-totals
#pragma once

#include "ledger/group_file.h"
#include "ledger/shared_layout.h"

namespace ration::ledger {

// The operations of a slot are numbered in order. For each, the slot's owner first writes what it will claim afterwards
// (`claimed`, at the index of the number's parity). Then it exchanges {total, tag} for {total + change, own tag}; in
// this step the operation happens. Before another tag replaces this one, the operation is noted in its slot
// (`applied`). Hence the number of a slot's last operation is `applied` or, if the tag is the slot's, the larger of
// `applied` and the tag's number. `claimed` at the parity of that number is what the slot claims, whether its owner
// lives or died halfway. Reclaiming from a dead owner is an operation of the dead owner's slot, with a mark. Any
// process may try it, and exactly one succeeds, because the exchanges of all others fail.

// The last operation of `slot` on `device` that is in the total.
struct LastOperation {
  std::uint64_t operation = 0;
  std::uint64_t claimed = 0;
};
LastOperation last_operation(const GroupFile &file, std::uint32_t device, std::uint32_t slot, WideValue total);

// How many bytes the slot's owner holds, if it claims `claimed`. For display only, because the figures added up here
// are not updated in one step.
std::uint64_t held_of(const shared::Cell &cell, std::uint64_t claimed);

// Notes in the slot of `tag` that its operation happened. Any process may call it; a late call is harmless.
void note_applied(const GroupFile &file, std::uint32_t device, shared::Tag tag);

// One bit for each device.
using DeviceSet = std::uint64_t;
static_assert(shared::kDevices <= 64);

// Subtracts what the dead owner of `slot` claimed from every total and frees the slot. `life` is the value that
// Slot::life had when the owner was found dead. Any number of processes may call this at once; the slot is freed in the
// last step. Returns the devices for which the owner stated a limit; the caller must recompute those limits.
[[nodiscard]] DeviceSet reclaim_dead_owner(const GroupFile &file, std::uint32_t slot, std::uint64_t life);

// The smallest limit that an owned slot states, else the last one that an ended member left behind (Device::left);
// kNoLimit if no slot ever stated a limit.
std::uint64_t stated_limit(const GroupFile &file, std::uint32_t device);

// Sets the limit of `device` to the ordered limit, else to stated_limit(). Any process may call this, and must call it
// after stating or ordering a limit and after freeing slots.
void recompute_limit(const GroupFile &file, std::uint32_t device);
void recompute_limits(const GroupFile &file, DeviceSet devices);
// Recomputes a limit only if it is wrong, for instance because a process died before it could recompute it.
void check_limit(const GroupFile &file, std::uint32_t device);

// Wakes the threads that sleep on the file's `bell`. ring() changes `bell` first, so that they look for wishes and
// orders.
void wake_sleepers(const GroupFile &file);
void ring(const GroupFile &file);

// Frees the slots of dead owners. `probe` is a descriptor of the file that has its own open file description. A member
// passes its own slot, whose life byte `probe` must show as locked; other callers pass kNoSlot. Stops at `deadline_ns`
// (CLOCK_MONOTONIC). `cursor` is the slot to start from; after an early stop, the slot to continue from.
constexpr std::uint32_t kNoSlot = UINT32_MAX;
struct Reaping {
  bool found = false;  // a dead owner
  bool whole = true;   // every slot was checked
};
Reaping reap(const GroupFile &file, int probe, std::uint32_t own_slot, std::uint64_t deadline_ns,
             std::uint32_t &cursor);

// True if the file has limits, whether stated by members, left behind by them, or ordered.
bool remembers(const GroupFile &file);
// Removes these limits from the file of a group that has no member, for a new group of the same name, and marks that
// group as new. The caller must then check the limits of all devices. REQUIRES: the caller holds all life bytes.
void forget(const GroupFile &file);

}  // namespace ration::ledger

// The rules by which the total of a device changes, so that a death at any moment leaves it exact.
// Layer: ledger. Threads, and processes: as each function says; nobody ever waits for another.
//
// An operation of a slot has the number after its last one. Its owner first writes what it will hold then (`held`, the
// place of the number's parity), and after that exchanges {total, tag} for {total + change, own tag}: that is the one
// step that makes it so. Before a tag is replaced its operation is noted in its slot (`applied`). Hence the last
// operation that happened is the larger of what the tag (if it is the slot's) and `applied` say, and `held` of its
// parity is what the slot holds, whether its owner lives or died on the way. Taking that away from a dead owner is an
// operation of the same slot, with a mark, which anybody may do, and which only one can do: all others' exchanges fail.
#pragma once

#include "ledger/group_file.h"
#include "ledger/shared_layout.h"

namespace ration::ledger {

// The last operation of `slot` on `device` that is in the total.
struct LastOperation {
  std::uint64_t operation = 0;
  std::uint64_t held = 0;
};
LastOperation last_operation(const GroupFile &file, std::uint32_t device, std::uint32_t slot, WideValue total);

// Notes in its slot that the operation of `tag` happened. Any process; too late is harmless.
void note_applied(const GroupFile &file, std::uint32_t device, shared::Tag tag);

// A bit a device.
using DeviceSet = std::uint64_t;
static_assert(shared::kDevices <= 64);

// Takes everything that the dead owner of `slot` held off every device and frees the slot. `life` is what it was
// found dead with. Any process, any number of them at once; the last step of the last of them frees it. The devices
// that the owner stated a limit for: their limits are to be worked out anew.
[[nodiscard]] DeviceSet give_back_of_dead(const GroupFile &file, std::uint32_t slot, std::uint64_t life);

// Sets the limit of `device` to the smallest that is stated by an owned slot. Any process. Whoever states a limit
// calls it afterwards, whoever frees slots too.
void work_out_limit(const GroupFile &file, std::uint32_t device);
void work_out_limits(const GroupFile &file, DeviceSet devices);
// The same where nothing is new, in case that somebody died before he did so.
void check_limit(const GroupFile &file, std::uint32_t device);

// Frees the slots whose owners died. `probe` is a descriptor of the file of its own. Looks at no more slots when
// `deadline_ns` (CLOCK_MONOTONIC) is over; `cursor` says where to go on.
struct Reaping {
  bool found = false;  // a dead owner
  bool whole = true;   // every slot was looked at
};
Reaping reap(const GroupFile &file, int probe, std::uint32_t own_slot, std::uint64_t deadline_ns,
             std::uint32_t &cursor);

}  // namespace ration::ledger

// The sign that a slot's owner lives: a lock on the slot's life byte, dropped when the process ends or calls execve.
// Layer: ledger. Threads: any.
// It is a lock of an open file description (fcntl(2), F_OFD_SETLK): closing another descriptor does not drop it, and it
// works across PID namespaces. Only a mapping keeps the description; forked children do not inherit the mapping
// (madvise(2), MADV_DONTFORK) and execve drops it.
#pragma once

#include <cstdint>

namespace ration::ledger {

// overlayfs, and perhaps other stacked file systems: a mapping there does not keep the file's locks.
inline constexpr char kLosesLocks[] =
    "its file system drops a lock with the descriptor; set RATION_STATE_DIR to a folder on another one, such as tmpfs";

enum class LifeLock {
  taken,
  held,      // a living owner holds it
  removing,  // another process is removing the file
  failed,    // the file system has no such locks
};

// Locks the life byte of `slot`, or of all slots, for the open file description of `descriptor`.
[[nodiscard]] LifeLock lock_life(int descriptor, std::uint32_t slot);
[[nodiscard]] LifeLock lock_all_lives(int descriptor);
// A shared lock on the same byte.
[[nodiscard]] LifeLock share_life(int descriptor, std::uint32_t slot);
void unlock_life(int descriptor, std::uint32_t slot);
void unlock_all_lives(int descriptor);

// Whether the life bytes of `slots` slots from `slot` on are unlocked. `descriptor` needs an open file description of
// its own. False where this cannot be determined.
// Design: design/ledger.md#life-bytes
[[nodiscard]] bool is_dead(int descriptor, std::uint32_t slot, std::uint32_t slots = 1);
// Whether it is locked. False where this cannot be determined.
[[nodiscard]] bool is_alive(int descriptor, std::uint32_t slot);

}  // namespace ration::ledger

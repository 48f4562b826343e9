// A lock on a slot's life byte shows that the slot's owner is alive. The lock ends when the owner ends or calls execve.
// Layer: ledger. Threads: any.
// The lock belongs to an open file description (fcntl(2), F_OFD_SETLK), so closing another descriptor of the file does
// not drop it, and it works across PID namespaces. Only a mapping keeps the description open; forked children do not
// inherit the mapping (madvise(2), MADV_DONTFORK) and execve drops it.
#pragma once

#include <cstdint>

namespace ration::ledger {

// The message for overlayfs, and perhaps other stacked file systems, where a mapping does not keep the file's locks.
inline constexpr char kLosesLocks[] =
    "its file system drops a lock with the descriptor; set RATION_STATE_DIR to a folder on another one, such as tmpfs";

enum class LifeLock {
  taken,
  held,      // a living owner holds the lock
  removing,  // another process is removing the file
  failed,    // the file system has no such locks
};

// Locks the life byte of `slot`, or of all slots, for the open file description of `descriptor`.
[[nodiscard]] LifeLock lock_life(int descriptor, std::uint32_t slot);
[[nodiscard]] LifeLock lock_all_lives(int descriptor);
// Takes a shared lock on the life byte of `slot`.
[[nodiscard]] LifeLock share_life(int descriptor, std::uint32_t slot);
void unlock_life(int descriptor, std::uint32_t slot);
void unlock_all_lives(int descriptor);
// After lock_all_lives(): keeps only the lock on the life byte of `slot`.
void unlock_other_lives(int descriptor, std::uint32_t slot);

// True if the life bytes of `slots` slots, from `slot` on, are all unlocked; false if this cannot be determined.
// `descriptor` must have an open file description of its own.
// Design: design/ledger.md#life-bytes
[[nodiscard]] bool is_dead(int descriptor, std::uint32_t slot, std::uint32_t slots = 1);
// True if the life byte of `slot` is locked; false if this cannot be determined.
[[nodiscard]] bool is_alive(int descriptor, std::uint32_t slot);

}  // namespace ration::ledger

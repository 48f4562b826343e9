// The sign that a slot's owner lives: a lock on the slot's life byte that the kernel drops when the process ends or
// becomes another program.
// Layer: ledger. Threads: any.
//
// It is a lock of an open file description (fcntl(2), F_OFD_SETLK), which no other descriptor's close drops and which
// means the same in every PID namespace. The description is kept by a mapping alone, which fork children do not
// inherit (madvise(2), MADV_DONTFORK) and execve drops; so nothing but the owner keeps it.
#pragma once

#include <cstdint>

namespace ration::ledger {

enum class LifeLock {
  taken,
  somebodys,  // another owner's, who lives
  removing,   // somebody removes the file
  failed,     // the file system has no such locks
};

// Locks the life byte of `slot` for the open file description of `descriptor`, or of all slots.
[[nodiscard]] LifeLock lock_life(int descriptor, std::uint32_t slot);
[[nodiscard]] LifeLock lock_all_lives(int descriptor);
// The same byte, with others who only share it.
[[nodiscard]] LifeLock share_life(int descriptor, std::uint32_t slot);
void unlock_life(int descriptor, std::uint32_t slot);
void unlock_all_lives(int descriptor);

// Whether nobody holds the life byte of `slot`, or of any of so many from there on. `descriptor` must be of a
// description of its own. False where it cannot be told.
[[nodiscard]] bool is_dead(int descriptor, std::uint32_t slot, std::uint32_t slots = 1);

}  // namespace ration::ledger

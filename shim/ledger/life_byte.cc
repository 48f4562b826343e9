#include "ledger/life_byte.h"

#include <fcntl.h>

#include <cerrno>

#include "ledger/shared_layout.h"

namespace ration::ledger {
namespace {

struct flock range_of(short type, std::uint32_t slot, std::uint32_t slots) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = shared::kLifeBytes + slot;
  range.l_len = slots;
  return range;
}

LifeLock lock_range(int descriptor, std::uint32_t slot, std::uint32_t slots, short type = F_WRLCK) {
  struct flock range = range_of(type, slot, slots);
  if (fcntl(descriptor, F_OFD_SETLK, &range) == 0) {
    return LifeLock::taken;
  }
  if (errno != EAGAIN && errno != EACCES) {
    return LifeLock::failed;
  }
  range = range_of(type, slot, slots);
  const bool known = fcntl(descriptor, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  return known && range.l_len > 1 ? LifeLock::removing : LifeLock::held;
}

}  // namespace

LifeLock lock_life(int descriptor, std::uint32_t slot) {
  return lock_range(descriptor, slot, 1);
}

LifeLock share_life(int descriptor, std::uint32_t slot) {
  return lock_range(descriptor, slot, 1, F_RDLCK);
}

LifeLock lock_all_lives(int descriptor) {
  return lock_range(descriptor, 0, shared::kSlots);
}

void unlock_life(int descriptor, std::uint32_t slot) {
  struct flock range = range_of(F_UNLCK, slot, 1);
  fcntl(descriptor, F_OFD_SETLK, &range);
}

void unlock_all_lives(int descriptor) {
  struct flock range = range_of(F_UNLCK, 0, shared::kSlots);
  fcntl(descriptor, F_OFD_SETLK, &range);
}

void unlock_other_lives(int descriptor, std::uint32_t slot) {
  for (const auto &[begin, end] : {std::pair(0U, slot), std::pair(slot + 1, shared::kSlots)}) {
    if (struct flock range = range_of(F_UNLCK, begin, end - begin);
        begin < end) {  // a length of 0 would mean all that follow
      fcntl(descriptor, F_OFD_SETLK, &range);
    }
  }
}

bool is_dead(int descriptor, std::uint32_t slot, std::uint32_t slots) {
  struct flock range = range_of(F_WRLCK, slot, slots);
  return fcntl(descriptor, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK;
}

bool is_alive(int descriptor, std::uint32_t slot) {
  struct flock range = range_of(F_WRLCK, slot, 1);
  return fcntl(descriptor, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

}  // namespace ration::ledger

#include "tests/oracle/flags.h"

#include <condition_variable>
#include <mutex>

namespace oracle {
namespace {

std::mutex mutex;
std::condition_variable changed;
std::bitset<kMostFlags> is_set;
std::bitset<kMostFlags> awaited;
std::bitset<kMostFlags> locked;

}  // namespace

Flags &flags() {
  static Flags all;
  return all;
}

void Flags::set(int flag) {
  const std::lock_guard guard(mutex);
  is_set[static_cast<size_t>(flag)] = true;
  changed.notify_all();
}

void Flags::lock(int lock) {
  const std::lock_guard guard(mutex);
  locked[static_cast<size_t>(lock)] = true;
}

void Flags::unlock(int lock) {
  const std::lock_guard guard(mutex);
  locked[static_cast<size_t>(lock)] = false;
  changed.notify_all();
}

void Flags::unlock_all() {
  const std::lock_guard guard(mutex);
  locked.reset();
  changed.notify_all();
}

void Flags::await(const Gate &gate) {
  const std::lock_guard guard(mutex);
  if (gate.flag >= 0) awaited[static_cast<size_t>(gate.flag)] = true;
}

bool Flags::release() {
  const std::lock_guard guard(mutex);
  const bool opened = (awaited & ~is_set).any() || locked.any();
  is_set |= awaited;
  locked.reset();
  changed.notify_all();
  return opened;
}

std::bitset<kMostFlags> Flags::closed() const {
  const std::lock_guard guard(mutex);
  return awaited & ~is_set;
}

void Flags::set_all(const std::bitset<kMostFlags> &which) {
  const std::lock_guard guard(mutex);
  is_set |= which;
  changed.notify_all();
}

void Flags::pass(const Gate &gate) {
  std::unique_lock guard(mutex);
  if (gate.flag >= 0) changed.wait(guard, [&] { return is_set[static_cast<size_t>(gate.flag)]; });
  if (gate.lock >= 0) changed.wait(guard, [&] { return !locked[static_cast<size_t>(gate.lock)]; });
}

}  // namespace oracle

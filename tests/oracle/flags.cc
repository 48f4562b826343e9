#include "tests/oracle/flags.h"

#include <array>
#include <condition_variable>
#include <mutex>

namespace oracle {
namespace {

std::mutex mutex;
std::condition_variable changed;
std::array<bool, kMostFlags> is_set{};
std::array<bool, kMostFlags> awaited{};
std::array<bool, kMostFlags> locked{};

}  // namespace

Flags &flags() {
  static Flags all;
  return all;
}

void Flags::set(int flag) {
  const std::lock_guard guard(mutex);
  is_set[flag] = true;
  changed.notify_all();
}

void Flags::lock(int lock) {
  const std::lock_guard guard(mutex);
  locked[lock] = true;
}

void Flags::unlock(int lock) {
  const std::lock_guard guard(mutex);
  locked[lock] = false;
  changed.notify_all();
}

void Flags::unlock_all() {
  const std::lock_guard guard(mutex);
  locked.fill(false);
  changed.notify_all();
}

void Flags::await(const Gate &gate) {
  const std::lock_guard guard(mutex);
  if (gate.flag >= 0) awaited[gate.flag] = true;
}

bool Flags::release(bool locks) {
  const std::lock_guard guard(mutex);
  bool opened = false;
  for (int i = 0; i < kMostFlags; ++i) {
    opened |= awaited[i] && !is_set[i];
    if (awaited[i]) is_set[i] = true;
    if (locks) {
      opened |= locked[i];
      locked[i] = false;
    }
  }
  changed.notify_all();
  return opened;
}

void Flags::pass(const Gate &gate) {
  std::unique_lock guard(mutex);
  if (gate.flag >= 0) changed.wait(guard, [&] { return is_set[gate.flag]; });
  if (gate.lock >= 0) changed.wait(guard, [&] { return !locked[gate.lock]; });
}

}  // namespace oracle

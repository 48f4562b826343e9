// What members tell each other: orders, the queue of processes that wait to start, and wishes for memory.
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/open_beyond_streams.h"
#include "base/saturating.h"
#include "ledger/membership.h"
#include "ledger/totals.h"

namespace ration::ledger {

using shared::Cell;

namespace {

constexpr std::uint64_t kLeastUnknown = 8U << 20U;
constexpr std::uint64_t kPartUnknown = 64;
constexpr std::uint64_t kLeastSpan = 1U << 20U;  // by which published figures may be off (Account::publish)
// A member that has not looked at the queue for so long is taken to be stopped, and nobody waits for it.
constexpr std::uint64_t kStoppedNs = 2'000'000'000;

}  // namespace

void Membership::show_total(int device, std::uint64_t bytes) {
  if (is_here(device)) {
    file_.header().device[device].physical.store(bytes, std::memory_order_relaxed);
  }
}

std::uint64_t Membership::orders() const {
  return is_here(0) ? file_.slot(slot_).orders.load(std::memory_order_acquire) : heeded();
}

std::uint64_t Membership::heeded() const {
  return heeded_.load(std::memory_order_relaxed);
}

void Membership::take_note(std::uint64_t of_orders) {
  heeded_.store(of_orders, std::memory_order_relaxed);
  if (is_here(0)) {
    file_.slot(slot_).heeded.store(of_orders, std::memory_order_release);
  }
}

std::uint64_t Membership::ordered_limit(int device) const {
  return is_here(device) ? file_.slot(slot_).cells[device].ordered_limit.load(std::memory_order_relaxed) : 0;
}

std::uint64_t Membership::ordered_guarantee(int device) const {
  return is_here(device) ? file_.slot(slot_).cells[device].ordered_guarantee.load(std::memory_order_relaxed) : 0;
}

bool Membership::has_ordered_limit(int device) const {
  return is_here(device) && file_.header().device[device].ordered.load(std::memory_order_relaxed) != 0;
}

void Membership::refuse_guarantee(int device) {
  if (is_here(device)) {
    file_.slot(slot_).cells[device].ordered_guarantee.store(shared::kRefused, std::memory_order_relaxed);
  }
}

void Membership::queue_up(const Wants &wants) {
  if (!is_here(0)) {
    return;
  }
  shared::Slot &slot = file_.slot(slot_);
  for (const auto &[device, bytes] : wants) {
    slot.cells[device].waiting.store(bytes, std::memory_order_relaxed);
    slot.cells[device].touched.store(1, std::memory_order_relaxed);
  }
  slot.seen_ns.store(now_ns(), std::memory_order_relaxed);
  slot.ticket.store(file_.header().tickets.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Membership::leave_queue() {
  if (!is_here(0)) {
    return;
  }
  shared::Slot &slot = file_.slot(slot_);
  slot.ticket.store(0, std::memory_order_release);
  for (Cell &cell : slot.cells) {
    cell.waiting.store(0, std::memory_order_relaxed);
  }
}

void Membership::show_presence(int device) {
  std::uint64_t none = 0;
  if (is_here(device)) {
    file_.slot(slot_).cells[device].touched.compare_exchange_strong(none, 2, std::memory_order_relaxed);
  }
}

std::uint64_t Membership::neighbours(int device) const {
  std::uint64_t count = 0;
  for (std::uint32_t i = 0, end = slots_on(device); i < end; ++i) {
    const shared::Slot &slot = file_.slot(i);
    const bool lives = i != slot_ && slot.is_owned();
    count += lives && slot.cells[device].touched.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  }
  return count;
}

void Membership::show_waiting(int device, std::uint64_t bytes) {
  if (is_here(device)) {
    Cell &cell = file_.slot(slot_).cells[device];
    cell.waiting.store(bytes, std::memory_order_relaxed);
    cell.touched.store(1, std::memory_order_relaxed);
  }
}

std::size_t Membership::ahead() noexcept {
  reclaim_from_dead(0);
  if (!is_here(0)) {
    return 0;
  }
  shared::Slot &own = file_.slot(slot_);
  const std::uint64_t now = now_ns();
  own.seen_ns.store(now, std::memory_order_relaxed);
  const std::uint64_t ticket = own.ticket.load(std::memory_order_relaxed);
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < file_.slots(); ++i) {
    const shared::Slot &slot = file_.slot(i);
    const std::uint64_t other = slot.ticket.load(std::memory_order_acquire);
    const std::uint64_t seen = slot.seen_ns.load(std::memory_order_relaxed);
    if (other == 0 || other >= ticket || !slot.is_owned() || (seen < now && now - seen > kStoppedNs)) {
      continue;
    }
    for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
      if (slot.cells[device].waiting.load(std::memory_order_relaxed) != 0 &&
          own.cells[device].waiting.load(std::memory_order_relaxed) != 0) {
        ++count;
        break;
      }
    }
  }
  return count;
}

void Membership::learn_overhead(int device, std::uint64_t bytes) {
  if (is_here(device)) {
    file_.header().device[device].overhead.store(bytes, std::memory_order_relaxed);
  }
}

std::uint64_t Membership::learnt_overhead(int device) const {
  return is_here(device) ? file_.header().device[device].overhead.load(std::memory_order_relaxed) : 0;
}

// Simultaneous wishes overwrite each other, so a member that still waits repeats its own.
void Membership::want(int device, std::uint64_t bytes) {
  if (!is_here(device)) {
    return;
  }
  shared::Word &word = file_.header().device[device].wanted;
  const std::uint64_t last = shared::Wanted::of(word.load(std::memory_order_relaxed)).number;
  word.store(shared::Wanted{slot_, last + 1, bytes}.packed(), std::memory_order_relaxed);
  ring(file_);
}

void Membership::wake_sleepers() const {
  ledger::wake_sleepers(file_);
}

std::uint32_t Membership::wishes() const {
  return is_here(0) ? file_.header().bell.load(std::memory_order_acquire) : 0;
}

// Only the kernel touches the file here, so there is no need to check first that it is whole.
Membership::Woken Membership::wait_for_wish(std::uint32_t seen, std::uint64_t ns) const {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const timespec most{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  if (syscall(SYS_futex, &file_.header().bell, FUTEX_WAIT, seen, &most, nullptr, 0) == 0 || errno == EAGAIN) {
    return Woken::by_wish;
  }
  return errno == ETIMEDOUT || errno == EINTR ? Woken::by_time : Woken::for_ever;
}

std::uint64_t Membership::last_wish(int device) const {
  return is_here(device) ? file_.header().device[device].wanted.load(std::memory_order_relaxed) : 0;
}

std::uint64_t Membership::wished_by_another(std::uint64_t wish) const {
  const shared::Wanted wanted = shared::Wanted::of(wish);
  const bool lives = is_here(0) && wanted.slot < file_.slots() && file_.slot(wanted.slot).is_owned();
  return wanted.slot == slot_ || !lives ? 0 : wanted.bytes;
}

std::uint64_t Membership::idle_of(std::uint32_t slot, std::uint32_t device, Bound bound,
                                  std::uint64_t *operation) const {
  const Cell &cell = file_.slot(slot).cells[device];
  const LastOperation last = last_operation(file_, device, slot, file_.header().device[device].total.load());
  if (operation != nullptr) {
    *operation = last.operation;
  }
  const std::uint64_t held = held_of(cell, last.claimed);
  std::uint64_t used = cell.used.load(std::memory_order_relaxed);
  if (bound == Bound::most) {
    used -= std::min(used, std::max(kLeastSpan, held / kPartUnknown));
  } else if (bound == Bound::in_granules) {
    const bool has_granules = shared::PackedStitching::of(cell.stitching.load(std::memory_order_relaxed)).granules != 0;
    // Allows for the error of the published use, and for granules that are partly used and so cannot be returned.
    used = has_granules ? used + std::max(kLeastUnknown, held / kPartUnknown) : held;
  }
  // Memory that a guarantee covers is not returned for others.
  return minus_or_zero(held, std::max(used, cell.covered.load(std::memory_order_relaxed)));
}

std::uint64_t Membership::surplus_of(int device, Bound bound) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0, end = slots_on(device); i < end; ++i) {
    if (i != slot_ && file_.slot(i).is_owned()) {
      bytes += idle_of(i, static_cast<std::uint32_t>(device), bound);
    }
  }
  return bytes;
}

std::vector<Membership::Idle> Membership::idle(int device) const {
  std::vector<Idle> members;
  for (std::uint32_t i = 0, end = slots_on(device); i < end; ++i) {
    const shared::Slot &slot = file_.slot(i);
    const std::uint64_t life = slot.life.load(std::memory_order_acquire);
    if (i == slot_ || (life & 1) == 0) {
      continue;
    }
    std::uint64_t operation = 0;
    if (const std::uint64_t bytes = idle_of(i, static_cast<std::uint32_t>(device), Bound::most, &operation);
        bytes != 0) {
      const bool is_near = slot.pid_namespace.load(std::memory_order_relaxed) ==
                           file_.slot(slot_).pid_namespace.load(std::memory_order_relaxed);
      members.push_back({i, life, operation, bytes, is_near ? slot.pid.load(std::memory_order_relaxed) : 0});
    }
  }
  return members;
}

namespace {

// The state letter in a `stat` file of /proc. It follows the name, which may contain any character. 0: it cannot be
// read, or `name` is given and is not the one in the file.
char state_in(const char *path, const char *name = nullptr) {
  char text[512];
  const Descriptor file(open_beyond_streams(AT_FDCWD, path, O_RDONLY));
  const ssize_t length = file ? read(file.number(), text, sizeof(text) - 1) : -1;
  text[std::max<ssize_t>(length, 0)] = 0;
  const char *const name_end = std::strrchr(text, ')');
  if (name_end == nullptr || (name != nullptr && std::strstr(text, name) == nullptr) || name_end[1] != ' ') {
    return 0;
  }
  return name_end[2];
}

}  // namespace

bool Membership::Idle::is_stopped() const {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  return pid > 0 && state_in(path) == 'T';
}

bool Membership::Idle::is_giving() const {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/task", pid);
  const int folder = pid > 0 ? open_beyond_streams(AT_FDCWD, path, O_RDONLY | O_DIRECTORY) : -1;
  DIR *const tasks = folder >= 0 ? fdopendir(folder) : nullptr;
  bool any = false;
  while (const dirent *task = tasks != nullptr && !any ? readdir(tasks) : nullptr) {
    std::snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", pid, task->d_name);
    const char state = state_in(path, "(ration-give)");
    any = state == 'R' || state == 'D';
  }
  if (tasks != nullptr) {
    closedir(tasks);
  } else if (folder >= 0) {
    close(folder);
  }
  return any;
}

}  // namespace ration::ledger

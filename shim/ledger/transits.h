// What the threads of this process have reserved of one account and may not need: a bound of which the driver will take
// less, or memory that is on its way back. Whoever is refused meanwhile waits for their end and tries again.
// Layer: ledger. Threads: any.
//
//   const std::uint64_t before = account.transits().ended();
//   … a reservation fails, although nothing else changed …
//   const bool again = account.transits().may_have_refused(before);
//
// A thread that should look again only once those have ended that were under way at its look asks for that by turns.
// Each transit belongs to the turn in which it began. The next turn begins when nothing is left of the turn before the
// present one, so at most two are under way at any time.
// Design: design/granules.md#bytes-in-transit
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "base/held.h"
#include "base/wait.h"

namespace ration::ledger {

class Transits {
 public:
  bool any() const {
    return std::any_of(std::begin(phases_), std::end(phases_), [](const Phase &each) { return each.threads != 0; });
  }
  // Those that held something. Threads that only try do not count: two of them would keep each other trying.
  std::uint64_t ended() const { return ended_.load(); }
  // Whether one that held something was under way at some time since ended() was `before`.
  bool may_have_refused(std::uint64_t before) const { return any() || ended() != before; }

  std::uint64_t turn() const { return turn_.load(); }
  // Whether all have ended that were under way when turn() was `then`, those that only tried included.
  bool have_ended(std::uint64_t then) {
    for (std::uint64_t turn = turn_.load(); turn < then + 2;) {
      if (phase_of(turn + kPhases - 1).threads.load() != 0) {
        return false;
      }
      if (turn_.compare_exchange_strong(turn, turn + 1)) {
        ++turn;
      }
    }
    return true;
  }

 private:
  friend class Transit;
  static constexpr std::uint64_t kPhases = 3;
  struct Phase {
    Transits &transits;
    std::atomic<int> threads{0};
  };
  Phase &phase_of(std::uint64_t turn) { return phases_[turn % kPhases]; }

  // A thread that was late for its turn belongs to the present one.
  Phase &begin() {
    for (;;) {
      const std::uint64_t turn = turn_.load();
      Phase &phase = phase_of(turn);
      phase.threads.fetch_add(1);
      if (turn_.load() == turn) {
        return phase;
      }
      phase.threads.fetch_sub(1);
    }
  }

  std::atomic<std::uint64_t> turn_{0};
  Phase phases_[kPhases] = {{*this}, {*this}, {*this}};
  std::atomic<std::uint64_t> ended_{0};
};

// One of them. It begins before the reservation, so that nobody is refused in between, and ends after what was not
// needed was released.
class Transit {
 public:
  explicit Transit(Transits &transits) : phase_(transits.begin()) { held::note(end_left, &phase_); }
  ~Transit() {
    if (held::forget(end_left, &phase_)) {
      end(phase_, holds_);
    }
  }
  Transit(const Transit &) = delete;
  Transit &operator=(const Transit &) = delete;

  // Something was reserved, or is being returned.
  void hold() { holds_ = true; }

 private:
  static void end(Transits::Phase &phase, bool held) noexcept {
    phase.transits.ended_.fetch_add(held ? 1 : 0);  // first: who sees no thread sees this
    phase.threads.fetch_sub(1);
    wake_waiters();
  }
  static void end_left(void *phase) noexcept { end(*static_cast<Transits::Phase *>(phase), true); }

  Transits::Phase &phase_;
  bool holds_ = false;
};

}  // namespace ration::ledger

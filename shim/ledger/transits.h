// Counts the threads that hold bytes of one account only for a moment (a transit): reserved bytes that the driver will
// not all take, or memory that is being returned. A thread whose request is refused during transits waits until they
// have ended and tries again.
// Layer: ledger. Threads: any.
//
//   const std::uint64_t before = account.transits().ended();
//   … a reservation fails, although nothing else changed …
//   const bool again = account.transits().may_have_refused(before);
//
// Turns let a thread wait for exactly those transits that were in progress when it looked. Each transit belongs to the
// turn in which it began. The next turn begins when every transit of the turn before the present one has ended, so
// transits of at most two turns are in progress at any time.
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
  // The number of ended transits that held bytes. Threads that only tried to reserve do not count, because two such
  // threads would keep each other trying.
  std::uint64_t ended() const { return ended_.load(); }
  // True if a transit that may have held bytes was in progress at any time since ended() returned `before`.
  bool may_have_refused(std::uint64_t before) const { return any() || ended() != before; }

  std::uint64_t turn() const { return turn_.load(); }
  // True if every transit that was in progress when turn() returned `then` has ended, even those that only tried to
  // reserve.
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

  // If the turn changed before the thread was counted, counts it in the present turn instead.
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

// One transit. It begins before the reservation, so that a thread that is refused because of the transit can see it,
// and ends after the bytes that were not needed have been released.
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

  // To be called as soon as bytes were reserved, or before held bytes are returned.
  void hold() { holds_ = true; }

 private:
  static void end(Transits::Phase &phase, bool held) noexcept {
    phase.transits.ended_.fetch_add(held ? 1 : 0);  // first: a thread that reads the lower `threads` sees this
    phase.threads.fetch_sub(1);
    wake_waiters();
  }
  static void end_left(void *phase) noexcept { end(*static_cast<Transits::Phase *>(phase), true); }

  Transits::Phase &phase_;
  bool holds_ = false;
};

}  // namespace ration::ledger

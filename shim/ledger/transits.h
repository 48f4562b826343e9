// What the threads of this process have reserved of one account and may not need: a bound of which the driver will take
// less, or memory that is on its way back. Whoever is refused meanwhile waits for their end and tries again.
// Layer: ledger. Threads: any.
//
//   const std::uint64_t before = account.transits().ended();
//   … a reservation fails, although nothing else changed …
//   const bool again = account.transits().may_have_refused(before);
#pragma once

#include <atomic>
#include <cstdint>

#include "base/held.h"
#include "base/wait.h"

namespace ration::ledger {

class Transits {
 public:
  bool any() const { return threads_.load() != 0; }
  // Those that held something. Threads that only try do not count: two of them would keep each other trying.
  std::uint64_t ended() const { return ended_.load(); }
  // Whether one that held something was under way at some time since ended() was `before`.
  bool may_have_refused(std::uint64_t before) const { return any() || ended() != before; }

 private:
  friend class Transit;
  std::atomic<int> threads_{0};
  std::atomic<std::uint64_t> ended_{0};
};

// One of them. It begins before the reservation, so that nobody is refused in between, and ends after what was not
// needed was released.
class Transit {
 public:
  explicit Transit(Transits &transits) : transits_(transits) {
    transits_.threads_.fetch_add(1);
    held::note(end_left, &transits_);
  }
  ~Transit() {
    if (held::forget(end_left, &transits_)) {
      end(transits_, holds_);
    }
  }
  Transit(const Transit &) = delete;
  Transit &operator=(const Transit &) = delete;

  // Something was reserved, or is being returned.
  void hold() { holds_ = true; }

 private:
  static void end(Transits &transits, bool held) noexcept {
    transits.ended_.fetch_add(held ? 1 : 0);  // first: who sees no thread sees this
    transits.threads_.fetch_sub(1);
    wake_waiters();
  }
  static void end_left(void *transits) noexcept { end(*static_cast<Transits *>(transits), true); }

  Transits &transits_;
  bool holds_ = false;
};

}  // namespace ration::ledger

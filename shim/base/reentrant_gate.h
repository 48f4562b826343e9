// Lets one thread at a time through a section that spans driver calls, where no lock may be held.
// Layer: base. Threads: any. A thread that is already inside passes again: a driver call may call back into us.
#pragma once

#include <atomic>

#include "base/held.h"
#include "base/this_thread.h"
#include "base/wait.h"

namespace ration {

class ReentrantGate {
 public:
  using Owner = std::atomic<const void *>;  // the thread that is inside; nullptr: none
  enum class Patience { wait, none };

  explicit ReentrantGate(Owner &owner, Patience patience = Patience::wait) : owner_(owner) {
    Waiter waiter;
    for (const void *found = nullptr; !owner_.compare_exchange_strong(found, this_thread()); found = nullptr) {
      if (found == this_thread()) {
        inside_ = true;
        return;
      }
      if (patience == Patience::none) {
        return;
      }
      waiter.pause();
    }
    inside_ = entered_ = true;
    held::note(open, &owner_);
  }
  ~ReentrantGate() {
    if (entered_ && held::forget(open, &owner_)) {
      open(&owner_);
    }
  }
  ReentrantGate(const ReentrantGate &) = delete;
  ReentrantGate &operator=(const ReentrantGate &) = delete;

  // Returns false if another thread is inside and `patience` was none.
  explicit operator bool() const { return inside_; }
  // True if the thread was already inside.
  bool is_nested() const { return inside_ && !entered_; }

 private:
  static void open(void *owner) noexcept {
    static_cast<Owner *>(owner)->store(nullptr);
    wake_waiters();
  }

  Owner &owner_;
  bool inside_ = false;
  bool entered_ = false;
};

}  // namespace ration

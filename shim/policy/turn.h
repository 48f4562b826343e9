// One thread at a time through what spans driver calls, where no lock may be held.
// Layer: policy. Threads: any.
#pragma once

#include <sched.h>

#include <atomic>

#include "policy/this_thread.h"

namespace ration::policy {

class Turn {
 public:
  using Owner = std::atomic<const void *>;  // whose turn it is; nullptr: nobody's
  enum class Patience { wait, none };

  explicit Turn(Owner &owner, Patience patience = Patience::wait) : owner_(owner) {
    for (const void *found = nullptr; !owner_.compare_exchange_strong(found, this_thread()); found = nullptr) {
      if (found == this_thread()) {
        has_it_ = true;
        return;
      }
      if (patience == Patience::none) {
        return;
      }
      sched_yield();
    }
    has_it_ = mine_ = true;
  }
  ~Turn() {
    if (mine_) {
      owner_.store(nullptr);
    }
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

  // A thread whose driver calls call back into us has it already: nested.
  explicit operator bool() const { return has_it_; }
  bool is_nested() const { return has_it_ && !mine_; }

 private:
  Owner &owner_;
  bool has_it_ = false;
  bool mine_ = false;
};

}  // namespace ration::policy

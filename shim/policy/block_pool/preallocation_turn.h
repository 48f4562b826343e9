// Keeps which context of a device preallocates (the first one to allocate), and how far the preallocation has got.
// Layer: policy/block_pool. Threads: any.
// Design: design/placement.md#first-context-only
#pragma once

#include <atomic>

#include "base/held.h"
#include "base/wait.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

class PreallocationTurn {
 public:
  explicit PreallocationTurn(bool planned) : stage_(planned ? due : done) {}

  bool is_done() const { return stage_.load(std::memory_order_acquire) == done; }
  // Whether the context's preallocation is still to come.
  bool is_owed_to(const Context *context) const { return stage_.load() != done && first_.load() == context; }
  // Whether the context is the first; the first caller's context becomes the first.
  bool is_of(Context *context) {
    Context *first = nullptr;
    return first_.compare_exchange_strong(first, context) || first == context;
  }
  // True for one caller, which calls end() afterwards. If its thread never returns, base/held.h ends the turn.
  bool begin() {
    int stage = due;
    if (!stage_.compare_exchange_strong(stage, running)) {
      return false;
    }
    held::note(end_of, this);
    return true;
  }
  void end() noexcept {
    if (held::forget(end_of, this)) {
      end_of(this);
    }
  }
  void wait_while_running() {
    for (Waiter waiter; stage_.load(std::memory_order_acquire) == running; waiter.pause()) {
    }
  }
  // Called when a context has ended. Returns true if this context was the first. The next context to allocate then
  // takes its place, and preallocates if `planned`.
  bool begin_anew(Context *gone, bool planned) {
    if (!first_.compare_exchange_strong(gone, nullptr)) {
      return false;
    }
    stage_.store(planned ? due : done);
    return true;
  }

 private:
  enum Stage : int { due, running, done };
  static void end_of(void *turn) noexcept {
    static_cast<PreallocationTurn *>(turn)->stage_.store(done);
    wake_waiters();
  }

  std::atomic<Context *> first_{nullptr};  // an identity, never dereferenced
  std::atomic<int> stage_;
};

}  // namespace ration::policy

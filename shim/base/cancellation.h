// Keeps a thread from being cancelled inside Ration: a call of ours that is a cancellation point (write(2), open(2))
// would unwind through functions that let nothing out, which ends the process.
// Layer: base. Threads: concerns the calling thread only.
#pragma once

#include <pthread.h>

#include "base/held.h"

namespace ration {

// A cancellation that arrives meanwhile acts at the program's next cancellation point.
class CancellationOff {
 public:
  CancellationOff() : CancellationOff(held::thread()) {}
  // `thread`: the calling one's state; nullptr where there is none.
  explicit CancellationOff(RationThread *thread) : thread_(thread) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
    if (before_ == PTHREAD_CANCEL_ENABLE && thread_ != nullptr) {
      held::note(*thread_, allow, nullptr);
    }
  }
  ~CancellationOff() {
    if (before_ == PTHREAD_CANCEL_ENABLE && (thread_ == nullptr || held::forget(*thread_, allow, nullptr))) {
      allow(nullptr);
    }
  }
  CancellationOff(const CancellationOff &) = delete;
  CancellationOff &operator=(const CancellationOff &) = delete;

 private:
  static void allow(void *) noexcept { pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr); }

  RationThread *const thread_;
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace ration

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
  CancellationOff() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
    if (before_ == PTHREAD_CANCEL_ENABLE) {
      held::note(allow, nullptr);
    }
  }
  ~CancellationOff() {
    if (before_ == PTHREAD_CANCEL_ENABLE && held::forget(allow, nullptr)) {
      allow(nullptr);
    }
  }
  CancellationOff(const CancellationOff &) = delete;
  CancellationOff &operator=(const CancellationOff &) = delete;

 private:
  static void allow(void *) noexcept { pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr); }

  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace ration

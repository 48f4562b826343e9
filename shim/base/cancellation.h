// Keeps a thread from being cancelled inside Ration. Ration's calls of write(2), open(2) and others are cancellation
// points; a cancellation there would unwind through noexcept functions, which would end the process.
// Layer: base. Threads: concerns the calling thread only.
#pragma once

#include <pthread.h>

#include "base/held.h"

namespace ration {

// A cancellation that arrives during this object's life takes effect at the program's next cancellation point.
class CancellationOff {
 public:
  CancellationOff() : CancellationOff(held::thread()) {}
  // `thread` is the state of the calling thread, or nullptr if it has none.
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

// Keeps a thread from being cancelled inside Ration: a call of ours that is a cancellation point (write(2), open(2))
// would unwind through functions that let nothing out, which ends the process.
// Layer: base. Threads: concerns the calling thread only.
#pragma once

#include <pthread.h>

namespace ration {

// A cancellation that arrives meanwhile acts at the program's next cancellation point.
class CancellationOff {
 public:
  CancellationOff() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationOff() { pthread_setcancelstate(before_, nullptr); }
  CancellationOff(const CancellationOff &) = delete;
  CancellationOff &operator=(const CancellationOff &) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace ration

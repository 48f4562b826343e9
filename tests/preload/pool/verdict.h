// How a data test ends: the exit statuses that its caller tells apart, and the counts behind them.
// Layer: C++ over the driver API. Threads: any.
#pragma once

#include <stdio.h>

#include <atomic>

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // the exports' own names
#endif
#include <cuda.h>

namespace preload::pool {

enum Status : int {
  kRight = 0,
  kOtherFailure = 1,   // a call answered what it should not
  kWrongBytes = 3,     // somebody else's bytes in a block, or one block with two owners
  kNothingTested = 4,  // the run never met what it is about (no address came back, nothing was in flight)
};

class Verdict {
 public:
  // The first claim that fails decides; everybody stops at their next look.
  void fail(Status status) {
    int none = kRight;
    status_.compare_exchange_strong(none, status);
  }
  bool failed() const { return status_.load() != kRight; }
  int status() const { return status_.load(); }

  // True when the call succeeded.
  bool succeeded(const char *what, CUresult code) {
    if (code != CUDA_SUCCESS) {
      dprintf(1, "%s answered %d\n", what, static_cast<int>(code));
      fail(kOtherFailure);
    }
    return code == CUDA_SUCCESS;
  }

 private:
  std::atomic<int> status_{kRight};
};

}  // namespace preload::pool

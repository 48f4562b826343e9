// The exit statuses of a data test, as its caller distinguishes them.
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
  kOtherFailure = 1,   // a call returned a wrong code
  kWrongBytes = 3,     // a block has another owner's bytes, or two owners
  kNothingTested = 4,  // the run tested nothing (no address was reused, nothing was in flight)
};

class Verdict {
 public:
  // The first failure decides; all threads stop at their next check.
  void fail(Status status) {
    int none = kRight;
    status_.compare_exchange_strong(none, status);
  }
  bool failed() const { return status_.load() != kRight; }
  int status() const { return status_.load(); }

  // True if the call succeeded.
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

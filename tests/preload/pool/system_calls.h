// The system calls of one thread, counted from outside: a filter hands each to a second thread, which lets it go on.
// Threads: as said at each. Owns: that second thread.
#pragma once

#include <atomic>
#include <thread>

namespace preload::pool {

// As a fourth argument of mprotect, which has three: a call of the test's own, not to be counted.
inline constexpr unsigned kNotTheCallers = 0x5ea1ed;

class SystemCalls {
 public:
  struct Counts {
    unsigned long long waits = 0;  // sched_yield and the sleeps: what waiting for another thread's turn takes
    unsigned long long others = 0;
    int last = -1;  // of the others, by number
  };

  // Before the thread that is to be counted has begun: it must not come from one that is counted.
  SystemCalls();
  // After that thread has ended.
  ~SystemCalls();
  SystemCalls(const SystemCalls &) = delete;
  SystemCalls &operator=(const SystemCalls &) = delete;

  // From the thread itself, for the rest of its life. False: this kernel has no such filter.
  bool begin();
  // From the thread itself: exact.
  Counts counts() const { return {waits_.load(), others_.load(), last_.load()}; }

 private:
  static constexpr int kNotYet = -1, kNever = -2;
  void serve();

  std::atomic<int> listener_{kNotYet};
  std::atomic<unsigned long long> waits_{0};
  std::atomic<unsigned long long> others_{0};
  std::atomic<int> last_{-1};
  std::thread server_;
};

}  // namespace preload::pool

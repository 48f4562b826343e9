// The system calls of one thread, counted from outside: a filter hands each to a second thread, which continues it.
// Threads: see each function. Owns: that second thread.
#pragma once

#include <atomic>
#include <thread>

namespace preload::pool {

// As a fourth argument of mprotect, which has three: a call of the test's own, not to be counted.
inline constexpr unsigned kNotTheCallers = 0x5ea1ed;

class SystemCalls {
 public:
  struct Counts {
    unsigned long long waits = 0;  // sched_yield and the sleeps: waiting for another thread
    unsigned long long others = 0;
    int last = -1;  // of the others, by number
  };

  // Before the counted thread starts, from a thread that is not counted.
  SystemCalls();
  // After the counted thread has ended.
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

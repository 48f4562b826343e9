// The system calls of one thread, counted from outside. A filter hands each to a second thread, which continues it.
// Threads: see each function. Owns: that second thread.
#pragma once

#include <atomic>
#include <thread>

namespace preload::pool {

// A fourth argument to mprotect, which takes only three. It marks a call by the test itself, which is not counted.
inline constexpr unsigned kNotTheCallers = 0x5ea1ed;

class SystemCalls {
 public:
  struct Counts {
    unsigned long long waits = 0;  // sched_yield and the sleeps, which wait for another thread
    unsigned long long others = 0;
    int last = -1;  // the number of the latest of the other calls
  };

  // To be called before the counted thread starts, from a thread that is not counted.
  SystemCalls();
  // To be called after the counted thread has ended.
  ~SystemCalls();
  SystemCalls(const SystemCalls &) = delete;
  SystemCalls &operator=(const SystemCalls &) = delete;

  // To be called by the counted thread; counts until that thread ends. Returns false if this kernel has no such filter.
  bool begin();
  // Exact if the counted thread itself calls this.
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

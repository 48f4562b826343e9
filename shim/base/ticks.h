// A counter of the processor that is cheaper to read than a clock, for work that must be done from time to time but not
// at an exact time.
// Layer: base. Threads: any; no system call. The counters of several processors may differ by some ticks.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace ration {

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return now_ns();
#endif
}

// A number of ticks that takes between 8 and 33 µs if the counter runs at 1 to 4 GHz or its frequency can be read.
inline std::uint64_t ticks_of_a_moment() noexcept {
#if defined(__aarch64__)
  std::uint64_t in_a_second = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(in_a_second));
  return in_a_second / 65'536;
#else
  return 32'768;
#endif
}

}  // namespace ration

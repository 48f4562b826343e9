// Host memory that runs out when a test says so: operator new, in programs that are linked with host_memory.cc.
// Threads: each has its own.
#pragma once

#include <cstdint>

namespace ration::pool::host_memory {

inline constexpr std::uint64_t kPlenty = ~std::uint64_t{0};
inline thread_local std::uint64_t left = kPlenty;  // requests until there is no more
inline thread_local std::uint64_t refused = 0;     // requests so far

// As long as it lives, so many requests are met and no more.
class Limit {
 public:
  explicit Limit(std::uint64_t requests) : before_(left) { left = requests; }
  Limit(const Limit &) = delete;
  Limit &operator=(const Limit &) = delete;
  ~Limit() { left = before_; }

 private:
  std::uint64_t before_;
};

}  // namespace ration::pool::host_memory

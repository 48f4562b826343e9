// Limits host memory: replaces operator new in programs that link host_memory.cc. Threads: each has its own limit.
#pragma once

#include <cstdint>

namespace ration::pool::host_memory {

inline constexpr std::uint64_t kPlenty = ~std::uint64_t{0};
inline thread_local std::uint64_t left = kPlenty;  // requests until operator new fails
inline thread_local std::uint64_t refused = 0;     // failed requests so far

// While this object exists, only this many requests succeed.
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

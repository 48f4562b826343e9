// Host memory that runs out on purpose; the operators that obey this limit are in no_memory_test.cc.
#pragma once

namespace ration::test {

// The number of this thread's allocations that will still succeed; negative: all.
inline thread_local int allocations_left = -1;

// While this object exists, the fake driver's own allocations always succeed.
class UnlimitedHostMemory {
 public:
  UnlimitedHostMemory() : left_(allocations_left) { allocations_left = -1; }
  ~UnlimitedHostMemory() { allocations_left = left_; }
  UnlimitedHostMemory(const UnlimitedHostMemory &) = delete;
  UnlimitedHostMemory &operator=(const UnlimitedHostMemory &) = delete;

 private:
  const int left_;
};

}  // namespace ration::test

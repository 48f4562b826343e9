// Host memory that runs out on purpose. The operators that obey are in no_memory_test.cc.
#pragma once

namespace ration::test {

// How many allocations of this thread still succeed; negative: all.
inline thread_local int allocations_left = -1;

// The fake driver's own needs are always met.
class WellFed {
 public:
  WellFed() : left_(allocations_left) { allocations_left = -1; }
  ~WellFed() { allocations_left = left_; }
  WellFed(const WellFed &) = delete;
  WellFed &operator=(const WellFed &) = delete;

 private:
  const int left_;
};

}  // namespace ration::test

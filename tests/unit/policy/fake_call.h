// Helpers to write a function of the fake driver: call() counts the call and returns the scripted code, or else runs
// the function's body; fill() puts the function into its slot.
#pragma once

#include "unit/policy/fake_driver.h"
#include "unit/policy/host_memory.h"

namespace ration::test {

template <class Body>
CUresult call(const char *function, const Body &body) {
  const UnlimitedHostMemory fed;
  const CUresult scripted = FakeDriver::fake->enter(function);
  return scripted != CUDA_SUCCESS ? scripted : body();
}

template <class Slot, class Signature>
void fill(Slot &slot, Signature *function) {
  typename Slot::Function typed = function;
  slot.set(reinterpret_cast<void *>(typed));
}

// Slots of functions that take a pointer and return a value.
template <class T, class Value>
CUresult answer(T *place, Value value) {
  *place = static_cast<T>(value);
  return CUDA_SUCCESS;
}

}  // namespace ration::test

// Defines how a function of the fake driver is written: its count and its script come first, then its body, in the slot
// of its name.
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

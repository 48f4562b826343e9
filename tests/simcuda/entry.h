// The entry layer of the simulated driver: code that every exported function runs before and after its body.
// Layer: settings, driver state. Threads: any. Called from: the generated entry points (entries.cc).
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdint>
#include <exception>

namespace simcuda {

enum class DefaultStream : unsigned char { kLegacy, kPerThread };
enum class Needs : unsigned char { kNothing, kDriver };

extern const char *const kSymbols[];
extern const unsigned kSymbolCount;
extern const unsigned kImplementedCount;

// The meaning of stream 0 in this thread's current call: legacy in the plain exports, per-thread in _ptds and _ptsz.
DefaultStream default_stream();

// Counts the call; false = the call must return *refusal without running its body.
bool admit(unsigned index, DefaultStream stream, Needs needs, CUresult *refusal);
CUresult leave(unsigned index, CUresult result);

CUresult not_simulated(unsigned index);

// The call is about a block, a mapping or a part of a pool of this size: it takes its cost for each (costs.h).
void about(std::uint64_t bytes);

// Details of a call for the trace. At most 120 characters are kept.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// During its lifetime the driver's functions refuse calls on this thread, as from a host function.
class DeviceSide {
 public:
  DeviceSide();
  ~DeviceSide();
  DeviceSide(const DeviceSide &) = delete;
  DeviceSide &operator=(const DeviceSide &) = delete;
};

template <class Body>
CUresult enter(unsigned index, DefaultStream stream, Needs needs, Body body) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  if (admit(index, stream, needs, &result)) {
    try {
      result = body();
    } catch (const std::exception &) {
      result = CUDA_ERROR_OUT_OF_MEMORY;  // host memory; the real driver has no separate code for it
    }
  }
  return leave(index, result);
}

}  // namespace simcuda

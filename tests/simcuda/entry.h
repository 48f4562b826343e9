// The way into the simulated driver: what every exported function does before and after its body.
// Layer: settings, driver state. Threads: any. Called from: the generated entry points (entries.cc).
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <exception>

namespace simcuda {

enum class DefaultStream : unsigned char { kLegacy, kPerThread };
enum class Needs : unsigned char { kNothing, kDriver };

extern const char *const kSymbols[];
extern const unsigned kSymbolCount;
extern const unsigned kImplementedCount;

// What stream 0 means in the call that this thread is in: the plain exports say legacy, _ptds and _ptsz per-thread.
DefaultStream default_stream();

// Counts the call; false = it must answer *refusal without running its body.
bool admit(unsigned index, DefaultStream stream, Needs needs, CUresult *refusal);
CUresult leave(unsigned index, CUresult result);

CUresult not_simulated(unsigned index);

// For the trace: what a call was about. At most 120 characters are kept.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// While one lives, the driver's functions refuse to be called on this thread, as from a host function.
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
      result = CUDA_ERROR_OUT_OF_MEMORY;  // host memory; the real driver has no other word for it
    }
  }
  return leave(index, result);
}

}  // namespace simcuda

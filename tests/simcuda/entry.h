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

enum class Admission : unsigned char { kGranted, kFault, kRefused };
// Counts the call; unless granted, the call must return *refusal without running its body. kFault: a scripted refusal.
Admission admit(unsigned index, DefaultStream stream, Needs needs, CUresult *refusal);
CUresult leave(unsigned index, CUresult result);

CUresult not_simulated(unsigned index);

// Notes that the call concerns a block, mapping or pool part of this size, and takes the time for each (costs.h).
void about(std::uint64_t bytes);

// Adds details of a call to the trace. At most 120 characters are kept.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// While this object exists, the driver's functions refuse calls on this thread, as from a host function.
class DeviceSide {
 public:
  DeviceSide();
  ~DeviceSide();
  DeviceSide(const DeviceSide &) = delete;
  DeviceSide &operator=(const DeviceSide &) = delete;
};

// If the call has a scripted fault, `cleared` is set to 0, as by a call that a real driver refuses.
template <class Body, class... Out>
CUresult enter(unsigned index, DefaultStream stream, Needs needs, Body body, Out *...cleared) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  const Admission admission = admit(index, stream, needs, &result);
  if (admission == Admission::kFault) ((cleared == nullptr ? void() : void(*cleared = 0)), ...);
  if (admission == Admission::kGranted) {
    try {
      result = body();
    } catch (const std::exception &) {
      result = CUDA_ERROR_OUT_OF_MEMORY;  // host memory; the real driver has no separate code for it
    }
  }
  return leave(index, result);
}

}  // namespace simcuda

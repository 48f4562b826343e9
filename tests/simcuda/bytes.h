#pragma once

// Small arithmetic and stores that several of the driver's files use. Layer: the lowest. Threads: any. Owns: nothing.
#include <cstdint>
#include <cstring>

#include "cuda.h"

namespace simcuda {

constexpr std::uint64_t kPage = 4096;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

// Writes an attribute's value, of as many bytes as its type has.
template <class Value>
CUresult put(void *out, Value value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

}  // namespace simcuda

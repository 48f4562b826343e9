// The most that a CUDA array can cost a device, from its descriptor alone, without a driver call.
// Layer: policy/physical. Threads: any.
#pragma once
#include <cstdint>

#include "driver/array_abi.h"

namespace ration::policy {

// Sparse, or deferred: it takes no memory of its own.
inline bool is_mapped_later(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

// Never less than the smallest tiles take (64 bytes by 8 rows, all in whole 64 KiB) and never more than twice that; 0
// where memory is mapped later (sparse, deferred). A sum beyond 64 bits is UINT64_MAX. `levels` is cut to what
// the extent has, as cuMipmappedArrayCreate does. An unknown format counts 16 bytes an element, the most of any.
std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels = 1) noexcept;
// What the elements take: no driver needs less. An unknown format counts one byte an element.
std::uint64_t least_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels = 1) noexcept;

}  // namespace ration::policy

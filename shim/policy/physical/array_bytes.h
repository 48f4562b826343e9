// Calculates the most memory that a CUDA array can take of a device from the array's descriptor, without a driver call.
// Layer: policy/physical. Threads: any.
#pragma once
#include <cstdint>

#include "driver/array_abi.h"

namespace ration::policy {

// Whether the array is sparse or has deferred mapping, so that it takes no memory of its own.
inline bool is_mapped_later(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

// Returns at least the size in the smallest tiles (64 bytes by 8 rows, rounded up to whole 64 KiB) and at most twice
// that; 0 if memory is mapped later (sparse, deferred). A sum beyond 64 bits is UINT64_MAX. `levels` is limited to the
// levels that the extent has, as in cuMipmappedArrayCreate. An unknown format counts as 16 bytes an element, the most.
std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels = 1) noexcept;
// The bytes of the elements alone; no driver needs less. An unknown format counts as one byte an element.
std::uint64_t least_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels = 1) noexcept;

}  // namespace ration::policy

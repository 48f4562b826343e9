// What a CUDA array costs a device at most, from its descriptor alone: no driver is asked. Layer: driver/array_abi.h.
// Threads: any.
#pragma once
#include <cstdint>

#include "driver/array_abi.h"

namespace ration::policy {

// Never less than the smallest tiles take (64 bytes by 8 rows, all in whole 64 KiB) and never more than twice that; 0
// where memory is mapped later (sparse, deferred). A sum that 64 bits do not hold is UINT64_MAX. `levels` is cut to
// what the extent has, as cuMipmappedArrayCreate does. An unknown format counts 16 bytes an element, the most that any
// has.
std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels = 1) noexcept;

}  // namespace ration::policy

// A program's physical memory: what the hooks of cuMemCreate, cuMemMap, cuMemMapArrayAsync and related functions do.
#pragma once

#include "unit/policy/program.h"

namespace ration::test {

inline constexpr CUdeviceptr kRange = 0x7000'0000'0000;

// Handles are addresses of the fake driver's blocks. Mapping costs nothing and returns `code`.
struct Pieces {
  explicit Pieces(Program &its_program) : program(its_program) {}
  CUmemGenericAllocationHandle create(std::uint64_t bytes, int device = 0,
                                      CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE) {
    CUmemGenericAllocationHandle handle = kUntouched;
    CUmemLocation location{};
    location.type = where;
    location.id = device;
    last = program.parts.mapped_memory.create(
        {"cuMemCreate", bytes, bytes, nullptr}, location,
        [&](policy::Obtained &got) {
          got.bytes = bytes;
          return driver::real.cuMemAlloc_v2(&got.address, bytes);
        },
        [](CUdeviceptr made) { return driver::real.cuMemFree_v2(made); }, &handle);
    return handle;
  }
  CUresult release(CUmemGenericAllocationHandle handle) {
    return program.parts.mapped_memory.release("cuMemRelease", handle, [this] { return code; });
  }
  CUresult map(CUmemGenericAllocationHandle handle, CUdeviceptr address = kRange) {
    return program.parts.mapped_memory.map("cuMemMap", address, kMiB, handle, [this] { return code; });
  }
  CUresult unmap(CUdeviceptr address = kRange, std::uint64_t bytes = kMiB) {
    return program.parts.mapped_memory.unmap("cuMemUnmap", address, bytes, [this] { return code; });
  }
  CUresult retain(CUdeviceptr address, CUmemGenericAllocationHandle as) {
    CUmemGenericAllocationHandle handle = as;
    return program.parts.mapped_memory.retain("cuMemRetainAllocationHandle", address, &handle, [this] { return code; });
  }
  // One operation on tile `x` of level 0; handle 0 unmaps it.
  CUresult place(CUdeviceptr array, CUmemGenericAllocationHandle handle, unsigned x = 0, unsigned across = 1,
                 CUstream stream = CU_STREAM_LEGACY) {
    CUarrayMapInfo entry{};
    entry.resourceType = CU_RESOURCE_TYPE_ARRAY;
    entry.resource.array = reinterpret_cast<CUarray>(array);
    entry.subresource.sparseLevel = {0, 0, x * 128, 0, 0, across * 128, 128, 1};
    entry.memOperationType = handle != 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
    entry.memHandle.memHandle = handle;
    return program.parts.mapped_memory.map_arrays(&entry, 1, stream, [this] { return code; });
  }
  Program &program;
  CUresult code = CUDA_SUCCESS;
  CUresult last = CUDA_SUCCESS;
};

}  // namespace ration::test

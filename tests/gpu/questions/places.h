// Addresses of every kind, and table rows for each kind. Layer: mapping.h, tables.h. Owns: nothing; whatever a child
// process creates for a table ends with that process.
#pragma once
#include <functional>
#include <string>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/tables.h"

namespace question {

// Addresses of every kind.
struct Places : Stage {
  Places() {
    must(cuMemAlloc(&block, 4 * kMiB));
    must(cuMemAllocAsync(&pooled, kMiB, idle));
    must(cuStreamSynchronize(idle));
    must(cuMemAllocHost(&pinned, kMiB));
    cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL);
    mapped.map(0, handle);
    must(allow(mapped.at(), mapped.bytes()));
    CUmemAllocationProp memory = device_memory();
    memory.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (cuMemCreate(&shareable, kGranule, &memory, 0) != CUDA_SUCCESS) shareable = 0;
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    must(cuMemPoolCreate(&pool, &props));
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (cuMemPoolCreate(&shared_pool, &props) != CUDA_SUCCESS) shared_pool = nullptr;
    if (shared_pool != nullptr) must(cuMemAllocFromPoolAsync(&shared_block, kMiB, shared_pool, idle));
    must(cuStreamSynchronize(idle));
    // Created last, so that nothing else gets its address.
    must(cuMemAlloc(&freed, 64 * kMiB));
    must(cuMemFree(freed));
  }

  CUdeviceptr block = 0, pooled = 0, managed = 0, freed = 0, shared_block = 0;
  Handles handle{kGranule, 1};
  Range mapped{kGranule}, empty{kGranule};
  CUmemGenericAllocationHandle shareable = 0;
  CUmemoryPool pool = nullptr, shared_pool = nullptr;
  void *pinned = nullptr;
  unsigned on_host = 0;
};

struct Place {
  const char *way;
  CUdeviceptr (*address)(Places &);
};

inline CUdeviceptr host_address(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

inline const Place kPlaces[] = {
    {"valid", [](Places &s) { return s.block; }},
    {"inside_a_block", [](Places &s) { return s.block + kMiB; }},
    {"mapped_memory", [](Places &s) { return s.mapped.at(); }},
    {"pooled_memory", [](Places &s) { return s.pooled; }},
    {"managed_memory", [](Places &s) { return s.managed; }},
    {"pinned_memory", [](Places &s) { return host_address(s.pinned); }},
    {"host_memory", [](Places &s) { return host_address(&s.on_host); }},
    {"a_reserved_range", [](Places &s) { return s.empty.at(); }},
    {"a_freed_block", [](Places &s) { return s.freed; }},
    {"null", [](Places &) { return CUdeviceptr{0}; }},
    {"no_address", [](Places &) { return CUdeviceptr{0x1000}; }},
};

// Adds a row for each kind of address. Rows with a valid address, a null address or a host address are also played
// under every circumstance of a call (Crossed::kCalls).
inline void add_places(Table<Places> &table, const std::string &call,
                       const std::function<CUresult(Places &, Outputs &, CUdeviceptr)> &act) {
  for (const Place &place : kPlaces) {
    const std::string way = place.way;
    const bool crossed = way == "valid" || way == "null" || way == "host_memory";
    const auto address = place.address;
    table.push_back({call, way, crossed ? Crossed::kCalls : Crossed::kNot,
                     [=](Places &s, Outputs &o) { return act(s, o, address(s)); }});
  }
}

}  // namespace question

// The advice that a program gave for managed memory, page by page. The advice has no effect. A simulated device is
// charged the full size of a managed allocation from the start, the strictest reading of where its pages may be.
// Layer: none. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace simcuda {

inline constexpr std::uint64_t kManagedPage = 4096;

struct Advice {
  bool read_mostly = false;
  std::optional<CUmemLocation> preferred;
  std::set<int> accessed_by;  // device ordinals, CU_DEVICE_CPU
  std::optional<CUmemLocation> prefetched;
};

// For one allocation: address → the advice from there to the next entry.
struct Advised {
  std::map<std::uint64_t, Advice> from;
};

// A range in one managed allocation, extended to whole pages.
struct ManagedRange {
  Advised *advised = nullptr;  // null: not managed, or not in one allocation
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};
ManagedRange managed_range(std::uint64_t address, std::uint64_t bytes);

// Resolves a location now: HOST_NUMA_CURRENT becomes a node; INVALID_VALUE, INVALID_DEVICE.
CUresult resolve(CUmemLocation *location);
// The location that a device number means in the older calls.
CUmemLocation location_of(CUdevice device);

// Calls change(Advice &) for each part of the range; parts are split at the range's ends.
template <class Change>
void advise(const ManagedRange &range, Change change) {
  auto &from = range.advised->from;
  for (const std::uint64_t cut : {range.first, range.end}) {
    const auto after = from.upper_bound(cut);
    from.emplace_hint(after, cut, std::prev(after)->second);
  }
  for (auto part = from.find(range.first); part->first != range.end; ++part) change(part->second);
}

}  // namespace simcuda

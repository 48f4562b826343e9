// Virtual memory management, as these programs use it: handles of physical memory, and address ranges to which they are
// mapped. Layer: question.h. Owns: what it created; released at the end of the scope.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/gpu/questions/question.h"

namespace question {

constexpr std::size_t kGranule = 2 * kMiB;

inline CUmemAllocationProp device_memory() {
  CUmemAllocationProp memory = {};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return memory;
}

inline CUresult allow(CUdeviceptr address, std::size_t bytes) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, bytes, &access, 1);
}

// Physical memory: `count` handles of `bytes` each.
class Handles {
 public:
  explicit Handles(std::size_t bytes = kGranule, std::size_t count = 1) : bytes_(bytes) {
    const CUmemAllocationProp memory = device_memory();
    while (all_.size() < count) {
      CUmemGenericAllocationHandle handle = 0;
      const CUresult code = cuMemCreate(&handle, bytes, &memory, 0);
      if (code != CUDA_SUCCESS) release();
      must(code);
      all_.push_back(handle);
    }
  }
  ~Handles() { release(); }
  Handles(const Handles &) = delete;
  Handles &operator=(const Handles &) = delete;

  CUmemGenericAllocationHandle operator[](std::size_t index) const { return all_[index]; }
  std::size_t count() const { return all_.size(); }
  std::size_t bytes() const { return bytes_; }
  void release() {
    for (const CUmemGenericAllocationHandle handle : all_) cuMemRelease(handle);
    all_.clear();
  }

 private:
  std::size_t bytes_;
  std::vector<CUmemGenericAllocationHandle> all_;
};

// A reserved range of addresses.
class Range {
 public:
  explicit Range(std::size_t bytes) : bytes_(bytes) { must(cuMemAddressReserve(&address_, bytes, 0, 0, 0)); }
  ~Range() {
    for (const Part &part : mapped_) cuMemUnmap(part.address, part.bytes);
    cuMemAddressFree(address_, bytes_);
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

  CUdeviceptr at(std::size_t offset = 0) const { return address_ + offset; }
  std::size_t bytes() const { return bytes_; }

  // Maps a whole handle. Access to it must be set afterwards.
  void map(std::size_t offset, const Handles &handles, std::size_t index = 0) {
    must(cuMemMap(at(offset), handles.bytes(), 0, handles[index], 0));
    mapped_.push_back({at(offset), handles.bytes()});
  }
  void unmap(std::size_t offset) {
    const auto part =
        std::find_if(mapped_.begin(), mapped_.end(), [&](const Part &p) { return p.address == at(offset); });
    must(cuMemUnmap(part->address, part->bytes));
    mapped_.erase(part);
  }

 private:
  struct Part {
    CUdeviceptr address;
    std::size_t bytes;
  };
  CUdeviceptr address_ = 0;
  std::size_t bytes_;
  std::vector<Part> mapped_;
};

// A range in which the handles are mapped in a different order from their creation.
class Stitched {
 public:
  explicit Stitched(std::size_t granules) : handles_(kGranule, granules), range_(granules * kGranule) {
    for (std::size_t i = 0; i < granules; ++i) range_.map(i * kGranule, handles_, granules - 1 - i);
    must(allow(range_.at(), range_.bytes()));
  }

  CUdeviceptr at(std::size_t offset = 0) const { return range_.at(offset); }
  std::size_t bytes() const { return range_.bytes(); }
  Range &range() { return range_; }
  const Handles &handles() const { return handles_; }

 private:
  Handles handles_;
  Range range_;
};

}  // namespace question

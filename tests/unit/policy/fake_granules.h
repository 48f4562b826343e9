// The fake driver's virtual memory, as far as sharing needs it. Handles are exported as files that name them, and calls
// on addresses are recorded. REQUIRES: a FakeDriver. Threads: any; one lock.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "unit/policy/fake_call.h"

namespace ration::test {

class FakeGranules {
 public:
  static constexpr CUdeviceptr kBase = 0x900000000;

  FakeGranules() {
    fake = this;
    fill(
        real().cuMemExportToShareableHandle,
        +[](void *place, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType, unsigned long long) {
          return call("cuMemExportToShareableHandle",
                      [&] { return answer(static_cast<int *>(place), file_of(handle)); });
        });
    fill(
        real().cuMemImportFromShareableHandle,
        +[](CUmemGenericAllocationHandle *handle, void *file, CUmemAllocationHandleType) {
          return call("cuMemImportFromShareableHandle", [&] {
            return answer(handle, handle_in(static_cast<int>(reinterpret_cast<std::intptr_t>(file))));
          });
        });
    fill(
        real().cuMemAddressReserve,
        +[](CUdeviceptr *place, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
          return call("cuMemAddressReserve", [&] {
            fake->note("reserve", 0, bytes);
            return answer(place, kBase);
          });
        });
    fill(
        real().cuMemMap, +[](CUdeviceptr address, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle handle,
                             unsigned long long) {
          return call("cuMemMap", [&] {
            if (handle == fake->unmappable) {
              return CUDA_ERROR_INVALID_VALUE;
            }
            fake->note("map " + std::to_string(handle), address - kBase, bytes);
            return CUDA_SUCCESS;
          });
        });
    fill(
        real().cuMemSetAccess, +[](CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc *access, std::size_t) {
          return call("cuMemSetAccess", [&] {
            fake->note("allow " + std::to_string(access->location.id - FakeDriver::kFirstHandle), address - kBase,
                       bytes);
            return CUDA_SUCCESS;
          });
        });
    fill_ends();
  }
  ~FakeGranules() { fake = nullptr; }
  FakeGranules(const FakeGranules &) = delete;
  FakeGranules &operator=(const FakeGranules &) = delete;

  // Returns the calls recorded so far, and forgets them.
  std::vector<std::string> done() {
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
  }

  CUmemGenericAllocationHandle unmappable = 0;
  int device = 0;  // of the memory
  std::function<void()> when_unmapped;

  static int file_of(CUmemGenericAllocationHandle handle) {
    const int file = memfd_create("handle", MFD_CLOEXEC);
    return pwrite(file, &handle, sizeof(handle), 0) == sizeof(handle) ? file : -1;
  }
  static CUmemGenericAllocationHandle handle_in(int file) {
    CUmemGenericAllocationHandle handle = 0;
    return pread(file, &handle, sizeof(handle), 0) == sizeof(handle) ? handle : 0;
  }

 private:
  static driver::Functions &real() { return driver::real; }
  static void fill_ends() {
    fill(
        real().cuMemUnmap, +[](CUdeviceptr address, std::size_t bytes) {
          return call("cuMemUnmap", [&] {
            fake->note("unmap", address - kBase, bytes);
            if (fake->when_unmapped) {
              fake->when_unmapped();
            }
            return CUDA_SUCCESS;
          });
        });
    fill(
        real().cuMemAddressFree, +[](CUdeviceptr, std::size_t bytes) {
          return call("cuMemAddressFree", [&] {
            fake->note("free", 0, bytes);
            return CUDA_SUCCESS;
          });
        });
    fill(
        real().cuMemRelease, +[](CUmemGenericAllocationHandle handle) {
          return call("cuMemRelease", [&] {
            fake->note("release " + std::to_string(handle), 0, 0);
            return CUDA_SUCCESS;
          });
        });
    fill(
        real().cuMemGetAllocationPropertiesFromHandle,
        +[](CUmemAllocationProp *properties, CUmemGenericAllocationHandle) {
          return call("cuMemGetAllocationPropertiesFromHandle", [&] {
            properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, FakeDriver::kFirstHandle + fake->device};
            return CUDA_SUCCESS;
          });
        });
  }
  // Sizes are in MiB; sizes of 0 are left out.
  void note(std::string what, std::uint64_t at, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    what += at == 0 ? "" : " at " + std::to_string(at / kMiB);
    done_.push_back(what + (bytes == 0 ? "" : " of " + std::to_string(bytes / kMiB)));
  }

  static inline FakeGranules *fake = nullptr;
  std::mutex mutex_;
  std::vector<std::string> done_;
};

}  // namespace ration::test

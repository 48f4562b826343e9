// Pools and their blocks shared with other processes of one simulated machine. A pool's descriptor is a label that
// names its owner. The bytes are in a file that the exporter keeps open, so importing from an exited process fails.
// Layer: mem_pool.h, exporter_file.h. Threads: any.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "implemented.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/exporter_file.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kTicketMagic = 0x74656b6369746d73ull, kBlockMagic = 0x6b636f6c62706d73ull;

struct Ticket {
  std::uint64_t magic;
  PoolOrigin origin;
  CUuuid device;
};

struct BlockData {
  std::uint64_t magic;
  PoolOrigin origin;
  std::uint64_t id;  // unique: later memory at the same address has another id
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(BlockData) <= sizeof(CUmemPoolPtrExportData));

PoolOrigin origin_of(const MemPool &pool) {
  const AddressSpace::File &file = pool.device->space->file();
  return {::getpid(), file.descriptor, file.inode, pool.id};
}

bool exportable(const MemPool &pool, CUmemAllocationHandleType type) {
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && (pool.handle_types & type) != 0 && !pool.origin;
}

int write_ticket(const Ticket &ticket) {
  const int file = ::memfd_create("simcuda-pool", MFD_CLOEXEC);
  if (file < 0 || ::write(file, &ticket, sizeof ticket) == sizeof ticket) return file;
  ::close(file);
  return -1;
}

}  // namespace

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                          unsigned long long flags) {
  if (handle_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  const std::shared_ptr<MemPool> found = find_pool(pool);
  if (found == nullptr || !exportable(*found, handleType)) return CUDA_ERROR_INVALID_VALUE;
  if (!has_addresses(*found->device)) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = write_ticket({kTicketMagic, origin_of(*found), found->device->uuid});
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(handle_out, &file, sizeof file);
  return CUDA_SUCCESS;
}

// The descriptor still belongs to the program.
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                            unsigned long long flags) {
  if (pool_out == nullptr || flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Ticket ticket = {};
  const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  if (::pread(file, &ticket, sizeof ticket, 0) != sizeof ticket || ticket.magic != kTicketMagic) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock(driver().mutex);
  MemPool imported;
  imported.device = device_with(ticket.device);
  if (imported.device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  imported.handle_types = handleType;
  imported.origin = ticket.origin;
  *pool_out = handle_of(add_pool(std::move(imported)).get());
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr) {
  if (shareData_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  const auto block = driver().allocations.find(ptr);
  if (block == driver().allocations.end() || block->second.pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MemPool &pool = *block->second.pool;
  if (!exportable(pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) return CUDA_ERROR_INVALID_VALUE;
  AddressSpace &space = *pool.device->space;
  if (!space.publish(ptr, block->second.id)) return CUDA_ERROR_OPERATING_SYSTEM;
  block->second.published = true;
  const BlockData data{kBlockMagic, origin_of(pool), block->second.id, space.offset(ptr), block->second.requested};
  *shareData_out = {};
  std::memcpy(shareData_out->reserved, &data, sizeof data);
  return CUDA_SUCCESS;
}

// Each import has separate addresses and is freed separately.
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
  if (ptr_out == nullptr || shareData == nullptr) return CUDA_ERROR_INVALID_VALUE;
  BlockData data = {};
  std::memcpy(&data, shareData->reserved, sizeof data);
  const Lock lock(driver().mutex);
  const std::shared_ptr<MemPool> found = find_pool(pool);
  if (found == nullptr || data.magic != kBlockMagic || found->origin != data.origin) return CUDA_ERROR_INVALID_VALUE;
  const ExporterFile file(data.origin.process, data.origin.descriptor, data.origin.inode);
  if (!file.holds(data.id, data.offset, data.bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!has_addresses(*found->device)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t bytes = (data.bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  const auto mapped = found->device->space->map(file.descriptor(), data.offset, bytes);
  if (!mapped) return CUDA_ERROR_OUT_OF_MEMORY;
  driver().allocations.emplace(*mapped, Allocation{.requested = data.bytes,
                                                   .bytes = bytes,
                                                   .device = found->device,
                                                   .id = driver().next_id++,
                                                   .import = Import{data.origin.inode, data.id, 1},
                                                   .pool = found});
  *ptr_out = *mapped;
  return CUDA_SUCCESS;
}

}  // namespace simcuda

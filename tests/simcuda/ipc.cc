// Memory shared with other processes of one simulated machine. A handle names the WHOLE allocation that contains an
// address. It also names the file with the bytes, which the exporting process keeps open.
// Layer: driver.h. Threads: any.
#include <unistd.h>

#include <cstring>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/exporter_file.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kMagic = 0x6370697563647573ull;

struct Content {
  std::uint64_t magic;
  std::int32_t process;
  std::int32_t descriptor;
  std::uint64_t inode;
  std::uint64_t id;  // unique: later memory at the same address has another id
  std::uint64_t offset;
  std::uint64_t bytes;
  CUuuid device;
};
static_assert(sizeof(Content) == sizeof(CUipcMemHandle));

// Increments the count if it is already open. "May only be opened by one CUcontext per CUdevice" (cuda.h).
bool opened_before(const Content &content, const Context &context, CUdeviceptr *address, CUresult *result) {
  for (auto &[at, block] : driver().allocations) {
    const bool same = block.import && block.import->inode == content.inode && block.import->id == content.id;
    if (!same || block.freeing) continue;
    *result = block.context == context.root ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (*result == CUDA_SUCCESS) {
      ++block.import->opened;
      *address = at;
    }
    return true;
  }
  return false;
}

CUresult open_theirs(const Content &content, Context &context, CUdeviceptr *address) {
  CUresult result = CUDA_SUCCESS;
  if (opened_before(content, context, address, &result)) return result;
  Device *const device = device_with(content.device);
  const ExporterFile file(content.process, content.descriptor, content.inode);
  if (device == nullptr || !file.holds(content.id, content.offset, content.bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!has_addresses(*device)) return CUDA_ERROR_MAP_FAILED;
  const std::uint64_t bytes = (content.bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  const auto mapped = device->space->map(file.descriptor(), content.offset, bytes);
  if (!mapped) return CUDA_ERROR_MAP_FAILED;
  driver().allocations.emplace(*mapped, Allocation{.requested = content.bytes,
                                                   .bytes = bytes,
                                                   .device = device,
                                                   .context = context.root,
                                                   .id = driver().next_id++,
                                                   .import = Import{content.inode, content.id, 1}});
  *address = *mapped;
  return CUDA_SUCCESS;
}

}  // namespace

// Imported memory cannot be exported again, and pools have separate handles.
CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto block = allocation_at(dptr);
  if (pHandle == nullptr || block == driver().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  if (block->second.import || block->second.context == nullptr || block->second.managed != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const Device &device = *block->second.device;
  AddressSpace &space = *device.space;
  block->second.published |= space.publish(block->first, block->second.id);
  const Content content{kMagic,
                        ::getpid(),
                        space.file().descriptor,
                        space.file().inode,
                        block->second.id,
                        space.offset(block->first),
                        block->second.requested,
                        device.uuid};
  std::memcpy(pHandle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return simcuda::cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

// A process cannot open a handle that it exported.
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  Content content = {};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (pdptr == nullptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (content.magic != kMagic) return CUDA_ERROR_INVALID_HANDLE;
  if (content.process == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (content.descriptor < 0) {
    complain("simcuda: cuIpcOpenMemHandle of memory on another machine: both processes must name one SIMCUDA_MACHINE");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return open_theirs(content, *context, pdptr);
}

// Waits for the work queued in the context, as a free does.
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  const auto found = driver().allocations.find(dptr);
  if (found == driver().allocations.end() || !found->second.import || found->second.freeing) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (--found->second.import->opened > 0) return CUDA_SUCCESS;
  found->second.freeing = true;
  const std::uint64_t id = found->second.id;
  drain(lock, *found->second.context);
  const auto still = driver().allocations.find(dptr);
  if (still != driver().allocations.end() && still->second.id == id) release_allocation(still);
  return CUDA_SUCCESS;
}

}  // namespace simcuda

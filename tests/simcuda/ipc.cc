// Handles of memory for other processes. Only the giving side is simulated: a handle names the WHOLE allocation that
// an address lies in, whatever the address. Opening one of another process says loudly that it cannot.
// Layer: driver.h. Threads: any.
#include <unistd.h>

#include <cstring>

#include "implemented.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kMagic = 0x6370697563647573ull;

struct Content {
  std::uint64_t magic;
  std::uint64_t process;
  std::uint64_t id;  // unique: memory that comes back at the same address has another
  std::uint64_t base;
  std::uint64_t bytes;
};
static_assert(sizeof(Content) <= sizeof(CUipcMemHandle));

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto block = allocation_at(dptr);
  if (pHandle == nullptr || block == driver().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  if (block->second.pool != nullptr) return CUDA_ERROR_INVALID_VALUE;  // pools have handles of their own
  const Content content{kMagic, static_cast<std::uint64_t>(::getpid()), block->second.id, block->first,
                        block->second.requested};
  *pHandle = {};
  std::memcpy(pHandle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return simcuda::cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

// The process that made a handle may not open it.
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  Content content = {};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (pdptr == nullptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (content.magic != kMagic) return CUDA_ERROR_INVALID_HANDLE;
  if (content.process == static_cast<std::uint64_t>(::getpid())) return CUDA_ERROR_INVALID_CONTEXT;
  complain("simcuda: cuIpcOpenMemHandle of another process's memory is not simulated");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace simcuda

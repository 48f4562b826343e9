// Primary contexts: one per device, reference-counted. Layer: driver.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

CUresult set_flags(CUdevice dev, unsigned int flags, bool while_active) {
  Device *device = nullptr;
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  const Lock lock(driver().mutex);
  if (device->primary->alive && !while_active) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  device->primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult release(CUdevice dev) {
  Device *device = nullptr;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  Lock lock(driver().mutex);
  if (device->primary_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_retained == 0 && device->primary->alive) tear_down(lock, *device->primary);
  return CUDA_SUCCESS;
}

// Callers that retained it must still release it.
CUresult reset(CUdevice dev) {
  Device *device = nullptr;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  Lock lock(driver().mutex);
  if (device->primary->alive) tear_down(lock, *device->primary);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
  Device *device = nullptr;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  Lock lock(driver().mutex);
  if (!device->primary->alive) {
    if (const CUresult error = bring_up(lock, *device->primary); error != CUDA_SUCCESS) return error;
  }
  ++device->primary_retained;
  *pctx = handle_of(device->primary.get());
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return release(dev);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return release(dev);
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return reset(dev);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return reset(dev);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return set_flags(dev, flags, false);
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return set_flags(dev, flags, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
  Device *device = nullptr;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;  // H200, driver 580.159
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  const Lock lock(driver().mutex);
  *flags = device->primary->flags;
  *active = device->primary->alive;
  return CUDA_SUCCESS;
}

}  // namespace simcuda

// Device identity: name, size, UUID, bus address. Layer: driver.h. Threads: any; everything here is constant.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/device_attributes.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

constexpr char kName[] = "simcuda GPU";

CUresult uuid(CUuuid *uuid, CUdevice dev) {
  Device *device = nullptr;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  Device *found = nullptr;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(ordinal, &found); error != CUDA_SUCCESS) return error;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(driver().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
  Device *device = nullptr;
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  std::snprintf(name, static_cast<std::size_t>(len), "%s", kName);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
  return simcuda::uuid(uuid, dev);
}
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
  return simcuda::uuid(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
  Device *device = nullptr;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  *bytes = device->bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
  Device *device = nullptr;
  if (pi == nullptr || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  *pi = attribute_of(*device, attrib);
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
  Device *device = nullptr;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  *major = attribute_of(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = attribute_of(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev) {
  Device *device = nullptr;
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  const auto value = [&](CUdevice_attribute attribute) { return attribute_of(*device, attribute); };
  *prop = {};
  prop->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  prop->maxThreadsDim[0] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  prop->maxThreadsDim[1] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  prop->maxThreadsDim[2] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  prop->maxGridSize[0] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  prop->maxGridSize[1] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  prop->maxGridSize[2] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  prop->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  prop->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

// A device's bus number is its index on the machine plus one.
CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
  Device *device = nullptr;
  if (pciBusId == nullptr || len < 13) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02X:00.0", device->physical + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
  if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char *colon = std::strrchr(pciBusId, ':');  // [domain:]bus:device[.function]
  if (colon == nullptr || colon - pciBusId < 2) return CUDA_ERROR_INVALID_VALUE;
  unsigned bus = 0;
  if (std::from_chars(colon - 2, colon, bus, 16).ec != std::errc{}) return CUDA_ERROR_INVALID_VALUE;
  for (const Device &device : driver().devices) {
    if (device.physical + 1 != bus) continue;
    *dev = ordinal_of(device);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
  Device *one = nullptr, *other = nullptr;
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &one); error != CUDA_SUCCESS) return error;
  if (const CUresult error = device_of(peerDev, &other); error != CUDA_SUCCESS) return error;
  *canAccessPeer = one != other;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  Device *one = nullptr, *other = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(srcDevice, &one); error != CUDA_SUCCESS) return error;
  if (const CUresult error = device_of(dstDevice, &other); error != CUDA_SUCCESS) return error;
  if (one == other) return CUDA_ERROR_INVALID_DEVICE;
  *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
  return CUDA_SUCCESS;
}

}  // namespace simcuda

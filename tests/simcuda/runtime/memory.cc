// Allocation and pointer attributes. Layer: context. Threads: any.
// Every allocation is one public driver function; none bypasses the public API (measured).
#include "context.h"

using namespace simcudart;

namespace {

constexpr unsigned kPitchElementBytes =
    4;  // the runtime does not know the element size; cuMemAllocPitch requires 4, 8 or 16

void *pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}

// Wraps a driver call that returns an address. The program's pointer is what the driver makes of it, as under NVIDIA's
// runtime (13.0, H100 and H200, driver 580.159: a refused cudaMalloc or cudaMallocAsync changes it).
template <typename Allocate>
CUresult store(void **pointer, Allocate allocate) {
  CUdeviceptr block = address(*pointer);
  const CUresult result = allocate(&block);
  *pointer = pointer_to(block);
  return result;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  if (bytes == 0) {
    *pointer = nullptr;
    return remember(start());
  }
  return in_context(
      [=] { return store(pointer, [=](CUdeviceptr *block) { return call(driver.cuMemAlloc_v2, block, bytes); }); });
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return remember(cudaErrorInvalidValue);
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return remember(start());
  }
  return in_context([=] {
    return store(pointer, [=](CUdeviceptr *block) {
      return call(driver.cuMemAllocPitch_v2, block, pitch, width, height, kPitchElementBytes);
    });
  });
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr || bytes == 0) return remember(cudaErrorInvalidValue);
  return in_context([=] {
    return store(pointer, [=](CUdeviceptr *block) { return call(driver.cuMemAllocManaged, block, bytes, flags); });
  });
}

cudaError_t cudaFree(void *pointer) {
  return in_context([=] { return call(driver.cuMemFree_v2, address(pointer)); });
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  return in_context_if_asked([=] {
    return store(pointer, [=](CUdeviceptr *block) { return call(driver.cuMemAllocAsync, block, bytes, stream); });
  });
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  return in_context_if_asked([=] { return call(driver.cuMemFreeAsync, address(pointer), stream); });
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  return in_context([=] { return call(driver.cuMemHostAlloc, pointer, bytes, flags); });
}

cudaError_t cudaFreeHost(void *pointer) {
  if (pointer == nullptr) return remember(start());
  return in_context([=] { return call(driver.cuMemFreeHost, pointer); });
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  return in_context([=] { return call(driver.cuMemHostRegister_v2, pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void *pointer) {
  return in_context([=] { return call(driver.cuMemHostUnregister, pointer); });
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags) {
  if (device_pointer == nullptr) return remember(cudaErrorInvalidValue);
  return in_context([=] {
    return store(device_pointer,
                 [=](CUdeviceptr *block) { return call(driver.cuMemHostGetDevicePointer_v2, block, pointer, flags); });
  });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return in_context([=] { return call(driver.cuMemGetInfo_v2, free, total); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  if (attributes == nullptr) return remember(cudaErrorInvalidValue);
  // The real runtime's queries, in its order (measured).
  CUpointer_attribute queried[] = {CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  CUcontext context = nullptr;
  unsigned type = 0;
  CUdeviceptr device_pointer = 0;
  void *host_pointer = nullptr;
  unsigned managed = 0;  // the driver writes 4 bytes
  int device = -2;
  void *answers[] = {&context, &type, &device_pointer, &host_pointer, &managed, &device};
  const cudaError_t error =
      in_context([&] { return call(driver.cuPointerGetAttributes, 6U, queried, answers, address(pointer)); });
  if (error != cudaSuccess) return error;
  *attributes = {};
  attributes->type = managed != 0 ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(type);
  attributes->device = device;
  attributes->devicePointer = pointer_to(device_pointer);
  // Memory unknown to CUDA belongs to the program and keeps its address.
  attributes->hostPointer = type == 0 ? const_cast<void *>(pointer) : host_pointer;
  return cudaSuccess;
}

}  // extern "C"

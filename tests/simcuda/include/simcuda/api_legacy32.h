/* The exports of CUDA 2.0, whose addresses and sizes have 32 bits: the names have no suffix, and current programs
 * never use them (simcuda/names.h). Read by C, C++ and by generate.py, which generates an exported entry point for
 * each; checked against cuda.h (tests/unit/driver/abi_test.cc).
 */
#ifndef SIMCUDA_API_LEGACY32_H_
#define SIMCUDA_API_LEGACY32_H_

#include "simcuda/array_types.h"

#ifdef __cplusplus
extern "C" {
#endif

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev);
CUresult cuMemGetInfo(unsigned int *free, unsigned int *total);
CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize);
CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                         unsigned int ElementSizeBytes);
CUresult cuMemFree(CUdeviceptr_v1 dptr);
CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr);
CUresult cuMemAllocHost(void **pp, unsigned int bytesize);
CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray);
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray);
CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray);
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray);

#ifdef __cplusplus
}
#endif

#endif /* SIMCUDA_API_LEGACY32_H_ */

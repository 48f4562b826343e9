// Copies and fills without a stream. They are treated as in reach.cc; in addition, if their memory has SYNC_MEMOPS that
// the driver does not know of, they wait for their work, which runs in the default stream of the call's variant.
// Layer: hooks. Threads: any.
#include "hooks/work_of.h"

using ration::driver::real;
using ration::hooks::between;
using ration::hooks::boxed;
using ration::hooks::synchronous;
using ration::hooks::touching;

extern "C" {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dst, src); }, real.cuMemcpy, dst, src, ByteCount);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dst, src); }, real.cuMemcpy_ptds, dst, src, ByteCount);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount) {
  return synchronous([=] { return between(CU_STREAM_LEGACY, dstDevice, dstContext, srcDevice, srcContext); },
                     real.cuMemcpyPeer, dstDevice, dstContext, srcDevice, srcContext, ByteCount);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount) {
  return synchronous([=] { return between(CU_STREAM_PER_THREAD, dstDevice, dstContext, srcDevice, srcContext); },
                     real.cuMemcpyPeer_ptds, dstDevice, dstContext, srcDevice, srcContext, ByteCount);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemcpyHtoD_v2, dstDevice, srcHost,
                     ByteCount);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemcpyHtoD_v2_ptds, dstDevice,
                     srcHost, ByteCount);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, srcDevice); }, real.cuMemcpyDtoH_v2, dstHost, srcDevice,
                     ByteCount);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, srcDevice); }, real.cuMemcpyDtoH_v2_ptds, dstHost,
                     srcDevice, ByteCount);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice, srcDevice); }, real.cuMemcpyDtoD_v2, dstDevice,
                     srcDevice, ByteCount);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice, srcDevice); }, real.cuMemcpyDtoD_v2_ptds,
                     dstDevice, srcDevice, ByteCount);
}

CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, srcDevice); }, real.cuMemcpyDtoA_v2, dstArray, dstOffset,
                     srcDevice, ByteCount);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, srcDevice); }, real.cuMemcpyDtoA_v2_ptds, dstArray,
                     dstOffset, srcDevice, ByteCount);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemcpyAtoD_v2, dstDevice, srcArray,
                     srcOffset, ByteCount);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemcpyAtoD_v2_ptds, dstDevice,
                     srcArray, srcOffset, ByteCount);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_LEGACY, pCopy); }, real.cuMemcpy2D_v2, pCopy);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_PER_THREAD, pCopy); }, real.cuMemcpy2D_v2_ptds, pCopy);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_LEGACY, pCopy); }, real.cuMemcpy2DUnaligned_v2, pCopy);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_PER_THREAD, pCopy); }, real.cuMemcpy2DUnaligned_v2_ptds, pCopy);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_LEGACY, pCopy); }, real.cuMemcpy3D_v2, pCopy);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_PER_THREAD, pCopy); }, real.cuMemcpy3D_v2_ptds, pCopy);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_LEGACY, pCopy); }, real.cuMemcpy3DPeer, pCopy);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy) {
  return synchronous([=] { return boxed(CU_STREAM_PER_THREAD, pCopy); }, real.cuMemcpy3DPeer_ptds, pCopy);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD8_v2, dstDevice, uc, N);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD8_v2_ptds, dstDevice, uc,
                     N);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD16_v2, dstDevice, us, N);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD16_v2_ptds, dstDevice, us,
                     N);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD32_v2, dstDevice, ui, N);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD32_v2_ptds, dstDevice, ui,
                     N);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD2D8_v2, dstDevice, dstPitch,
                     uc, Width, Height);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD2D8_v2_ptds, dstDevice,
                     dstPitch, uc, Width, Height);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD2D16_v2, dstDevice, dstPitch,
                     us, Width, Height);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD2D16_v2_ptds, dstDevice,
                     dstPitch, us, Width, Height);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_LEGACY, dstDevice); }, real.cuMemsetD2D32_v2, dstDevice, dstPitch,
                     ui, Width, Height);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
  return synchronous([=] { return touching(CU_STREAM_PER_THREAD, dstDevice); }, real.cuMemsetD2D32_v2_ptds, dstDevice,
                     dstPitch, ui, Width, Height);
}

}  // extern "C"

// Copies and fills in a stream, and graphs. Before the driver's call, the devices whose memory the work may use are
// noted.
// Layer: hooks. Threads: any.
#include "hooks/graph_run.h"
#include "hooks/work_of.h"

using ration::driver::real;
using ration::hooks::anywhere;
using ration::hooks::before;
using ration::hooks::between;
using ration::hooks::boxed;
using ration::hooks::launching;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::hooks::touching;

extern "C" {

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dst, src); }, real.cuMemcpyAsync, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dst, src); }, real.cuMemcpyAsync_ptsz, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream) {
  return before([=] { return between(hStream, dstDevice, dstContext, srcDevice, srcContext); }, real.cuMemcpyPeerAsync,
                dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return before([=] { return between(hStream, dstDevice, dstContext, srcDevice, srcContext); },
                real.cuMemcpyPeerAsync_ptsz, dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemcpyHtoDAsync_v2, dstDevice, srcHost, ByteCount,
                hStream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemcpyHtoDAsync_v2_ptsz, dstDevice, srcHost,
                ByteCount, hStream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, srcDevice); }, real.cuMemcpyDtoHAsync_v2, dstHost, srcDevice, ByteCount,
                hStream);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, srcDevice); }, real.cuMemcpyDtoHAsync_v2_ptsz, dstHost, srcDevice,
                ByteCount, hStream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice, srcDevice); }, real.cuMemcpyDtoDAsync_v2, dstDevice,
                srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice, srcDevice); }, real.cuMemcpyDtoDAsync_v2_ptsz, dstDevice,
                srcDevice, ByteCount, hStream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy2DAsync_v2, pCopy, hStream);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy2DAsync_v2_ptsz, pCopy, hStream);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy3DAsync_v2, pCopy, hStream);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy3DAsync_v2_ptsz, pCopy, hStream);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy3DPeerAsync, pCopy, hStream);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
  return before([=] { return boxed(hStream, pCopy); }, real.cuMemcpy3DPeerAsync_ptsz, pCopy, hStream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrIdxs, size_t numAttrs, size_t *failIdx,
                            CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyBatchAsync, dsts, srcs, sizes, count, attrs, attrIdxs,
                numAttrs, failIdx, hStream);
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attrIdxs, size_t numAttrs, size_t *failIdx,
                                 CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyBatchAsync_ptsz, dsts, srcs, sizes, count, attrs,
                attrIdxs, numAttrs, failIdx, hStream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrIdxs, size_t numAttrs, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyBatchAsync_v2, dsts, srcs, sizes, count, attrs,
                attrIdxs, numAttrs, hStream);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                    CUmemcpyAttributes *attrs, size_t *attrIdxs, size_t numAttrs, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyBatchAsync_v2_ptsz, dsts, srcs, sizes, count, attrs,
                attrIdxs, numAttrs, hStream);
}

CUresult cuMemcpy3DBatchAsync(size_t numParams, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                              unsigned long long flags, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DBatchAsync, numParams, opList, failIdx, flags,
                hStream);
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t numParams, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                   unsigned long long flags, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DBatchAsync_ptsz, numParams, opList, failIdx, flags,
                hStream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numParams, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                 CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DBatchAsync_v2, numParams, opList, flags, hStream);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numParams, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                      CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DBatchAsync_v2_ptsz, numParams, opList, flags,
                hStream);
}

CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr,
                                     CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyWithAttributesAsync, dst, src, size, attr, hStream);
}

CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr,
                                          CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpyWithAttributesAsync_ptsz, dst, src, size, attr,
                hStream);
}

CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DWithAttributesAsync, op, flags, hStream);
}

CUresult cuMemcpy3DWithAttributesAsync_ptsz(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuMemcpy3DWithAttributesAsync_ptsz, op, flags, hStream);
}

CUresult cuFabricCpyBatchAsync(size_t numOps, CUDA_FABRIC_COPY_BATCH_OP *opList, unsigned long long flags,
                               CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuFabricCpyBatchAsync, numOps, opList, flags, hStream);
}

CUresult cuFabricCpyBatchAsync_ptsz(size_t numOps, CUDA_FABRIC_COPY_BATCH_OP *opList, unsigned long long flags,
                                    CUstream hStream) {
  return before([=] { return anywhere(hStream); }, real.cuFabricCpyBatchAsync_ptsz, numOps, opList, flags, hStream);
}

CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags,
                                   size_t *errorIndex, CUstream stream) {
  return before([=] { return anywhere(stream); }, real.cuMemBatchDecompressAsync, paramsArray, count, flags, errorIndex,
                stream);
}

CUresult cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags,
                                        size_t *errorIndex, CUstream stream) {
  return before([=] { return anywhere(stream); }, real.cuMemBatchDecompressAsync_ptsz, paramsArray, count, flags,
                errorIndex, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD8Async, dstDevice, uc, N, hStream);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD8Async_ptsz, dstDevice, uc, N, hStream);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD16Async, dstDevice, us, N, hStream);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD16Async_ptsz, dstDevice, us, N, hStream);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD32Async, dstDevice, ui, N, hStream);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD32Async_ptsz, dstDevice, ui, N, hStream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D8Async, dstDevice, dstPitch, uc, Width,
                Height, hStream);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                                CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D8Async_ptsz, dstDevice, dstPitch, uc,
                Width, Height, hStream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D16Async, dstDevice, dstPitch, us, Width,
                Height, hStream);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                                 CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D16Async_ptsz, dstDevice, dstPitch, us,
                Width, Height, hStream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                            CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D32Async, dstDevice, dstPitch, ui, Width,
                Height, hStream);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                                 CUstream hStream) {
  return before([=] { return touching(hStream, dstDevice); }, real.cuMemsetD2D32Async_ptsz, dstDevice, dstPitch, ui,
                Width, Height, hStream);
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return before([=] { return anywhere(hStream); }, launching(real.cuGraphLaunch, "cuGraphLaunch", legacy(hStream)),
                hGraphExec, hStream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return before([=] { return anywhere(hStream); },
                launching(real.cuGraphLaunch_ptsz, "cuGraphLaunch_ptsz", per_thread(hStream)), hGraphExec, hStream);
}

}  // extern "C"

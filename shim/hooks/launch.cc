// Work for which there is no other hook. Memory freed before it gets its fence now, so that the fence does not cover
// the work. A launch that fails because the device has too little memory is repeated once memory that is free elsewhere
// was made available.
// Layer: hooks. Threads: any.
#include "hooks/before_work.h"
#include "policy/calls/overhead.h"

using ration::driver::real;
using ration::hooks::before;
using ration::hooks::kNoMemory;

namespace {

using ration::policy::Overhead;

template <class Slot, class... Arguments>
[[gnu::cold, gnu::noinline]] CUresult launch_again(const Slot &slot, Arguments... arguments) {
  return ration::hooks::forwarding<Overhead>(
      slot, [](Overhead &overhead, const auto &call) { return overhead.launch("cuLaunchKernel", call); }, arguments...);
}

// The first launch of a kernel in a context may take memory, for variables, stacks and the kernel's local memory.
template <class Slot, class... Arguments>
[[gnu::always_inline]] inline CUresult launch(const Slot &slot, Arguments... arguments) {
  const CUresult result = before(kNoMemory, slot, arguments...);
  return result != CUDA_ERROR_OUT_OF_MEMORY ? result : launch_again(slot, arguments...);
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
  return launch(real.cuLaunchKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                hStream, kernelParams, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
  return launch(real.cuLaunchKernel_ptsz, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                sharedMemBytes, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
  return launch(real.cuLaunchKernelEx, config, f, kernelParams, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
  return launch(real.cuLaunchKernelEx_ptsz, config, f, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) {
  return launch(real.cuLaunchCooperativeKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                sharedMemBytes, hStream, kernelParams);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams) {
  return launch(real.cuLaunchCooperativeKernel_ptsz, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                sharedMemBytes, hStream, kernelParams);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
  return before(kNoMemory, real.cuLaunchHostFunc, hStream, fn, userData);
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData) {
  return before(kNoMemory, real.cuLaunchHostFunc_ptsz, hStream, fn, userData);
}

CUresult cuLaunchHostFunc_v2(CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode) {
  return before(kNoMemory, real.cuLaunchHostFunc_v2, hStream, fn, userData, syncMode);
}

CUresult cuLaunchHostFunc_v2_ptsz(CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode) {
  return before(kNoMemory, real.cuLaunchHostFunc_v2_ptsz, hStream, fn, userData, syncMode);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags) {
  return before(kNoMemory, real.cuStreamAddCallback, hStream, callback, userData, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags) {
  return before(kNoMemory, real.cuStreamAddCallback_ptsz, hStream, callback, userData, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return before(kNoMemory, real.cuStreamWaitValue32_v2, stream, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return before(kNoMemory, real.cuStreamWaitValue32_v2_ptsz, stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return before(kNoMemory, real.cuStreamWaitValue64_v2, stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return before(kNoMemory, real.cuStreamWaitValue64_v2_ptsz, stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                               unsigned int flags) {
  return before(kNoMemory, real.cuStreamBatchMemOp_v2, stream, count, paramArray, flags);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                    unsigned int flags) {
  return before(kNoMemory, real.cuStreamBatchMemOp_v2_ptsz, stream, count, paramArray, flags);
}

}  // extern "C"

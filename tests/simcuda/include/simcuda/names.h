/* The names that programs use for the exports, as cuda.h 13.0 maps them. Included last by <cuda.h>, so that every
 * prototype above it keeps its own name. */
#ifndef SIMCUDA_NAMES_H_
#define SIMCUDA_NAMES_H_

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define SIMCUDA_PTDS(symbol) symbol##_ptds
#define SIMCUDA_PTSZ(symbol) symbol##_ptsz
#else
#define SIMCUDA_PTDS(symbol) symbol
#define SIMCUDA_PTSZ(symbol) symbol
#endif

#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuCtxCreate cuCtxCreate_v4
#define cuModuleGetGlobal cuModuleGetGlobal_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocPitch cuMemAllocPitch_v2
#define cuMemFree cuMemFree_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuMemAllocHost cuMemAllocHost_v2
#define cuMemHostGetDevicePointer cuMemHostGetDevicePointer_v2
#define cuMemcpyHtoD SIMCUDA_PTDS(cuMemcpyHtoD_v2)
#define cuMemcpyDtoH SIMCUDA_PTDS(cuMemcpyDtoH_v2)
#define cuMemcpyDtoD SIMCUDA_PTDS(cuMemcpyDtoD_v2)
#define cuMemcpy2D SIMCUDA_PTDS(cuMemcpy2D_v2)
#define cuMemcpy2DUnaligned SIMCUDA_PTDS(cuMemcpy2DUnaligned_v2)
#define cuMemcpyHtoDAsync SIMCUDA_PTSZ(cuMemcpyHtoDAsync_v2)
#define cuMemcpyDtoHAsync SIMCUDA_PTSZ(cuMemcpyDtoHAsync_v2)
#define cuMemcpyDtoDAsync SIMCUDA_PTSZ(cuMemcpyDtoDAsync_v2)
#define cuMemcpy2DAsync SIMCUDA_PTSZ(cuMemcpy2DAsync_v2)
#define cuMemsetD8 SIMCUDA_PTDS(cuMemsetD8_v2)
#define cuMemsetD16 SIMCUDA_PTDS(cuMemsetD16_v2)
#define cuMemsetD32 SIMCUDA_PTDS(cuMemsetD32_v2)
#define cuMemsetD2D8 SIMCUDA_PTDS(cuMemsetD2D8_v2)
#define cuMemsetD2D16 SIMCUDA_PTDS(cuMemsetD2D16_v2)
#define cuMemsetD2D32 SIMCUDA_PTDS(cuMemsetD2D32_v2)
#define cuArrayCreate cuArrayCreate_v2
#define cuArrayGetDescriptor cuArrayGetDescriptor_v2
#define cuArray3DCreate cuArray3DCreate_v2
#define cuArray3DGetDescriptor cuArray3DGetDescriptor_v2
#define cuMemMapArrayAsync SIMCUDA_PTSZ(cuMemMapArrayAsync)
#define cuMemcpyHtoA SIMCUDA_PTDS(cuMemcpyHtoA_v2)
#define cuMemcpyAtoH SIMCUDA_PTDS(cuMemcpyAtoH_v2)
#define cuMemcpyDtoA SIMCUDA_PTDS(cuMemcpyDtoA_v2)
#define cuMemcpyAtoD SIMCUDA_PTDS(cuMemcpyAtoD_v2)
#define cuMemcpyAtoA SIMCUDA_PTDS(cuMemcpyAtoA_v2)
#define cuMemcpy3D SIMCUDA_PTDS(cuMemcpy3D_v2)
#define cuMemcpyHtoAAsync SIMCUDA_PTSZ(cuMemcpyHtoAAsync_v2)
#define cuMemcpyAtoHAsync SIMCUDA_PTSZ(cuMemcpyAtoHAsync_v2)
#define cuMemcpy3DAsync SIMCUDA_PTSZ(cuMemcpy3DAsync_v2)
#define cuCtxDestroy cuCtxDestroy_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuGetProcAddress cuGetProcAddress_v2
#define cuEventElapsedTime cuEventElapsedTime_v2
#define cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
#define cuMemAdvise cuMemAdvise_v2
#define cuMemPrefetchAsync SIMCUDA_PTSZ(cuMemPrefetchAsync_v2)
#define cuGraphInstantiate cuGraphInstantiateWithFlags
#define cuGraphExecUpdate cuGraphExecUpdate_v2
#define cuGraphGetEdges cuGraphGetEdges_v2
#define cuGraphNodeGetDependencies cuGraphNodeGetDependencies_v2
#define cuGraphAddDependencies cuGraphAddDependencies_v2
#define cuGraphAddNode cuGraphAddNode_v2
#define cuStreamBeginCapture SIMCUDA_PTSZ(cuStreamBeginCapture_v2)
#define cuStreamGetCaptureInfo SIMCUDA_PTSZ(cuStreamGetCaptureInfo_v3)

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define cuMemcpy SIMCUDA_PTDS(cuMemcpy)
#define cuMemcpyAsync SIMCUDA_PTSZ(cuMemcpyAsync)
#define cuMemcpyPeer SIMCUDA_PTDS(cuMemcpyPeer)
#define cuMemcpyPeerAsync SIMCUDA_PTSZ(cuMemcpyPeerAsync)
#define cuMemsetD8Async SIMCUDA_PTSZ(cuMemsetD8Async)
#define cuMemsetD16Async SIMCUDA_PTSZ(cuMemsetD16Async)
#define cuMemsetD32Async SIMCUDA_PTSZ(cuMemsetD32Async)
#define cuMemsetD2D8Async SIMCUDA_PTSZ(cuMemsetD2D8Async)
#define cuMemsetD2D16Async SIMCUDA_PTSZ(cuMemsetD2D16Async)
#define cuMemsetD2D32Async SIMCUDA_PTSZ(cuMemsetD2D32Async)
#define cuStreamGetPriority SIMCUDA_PTSZ(cuStreamGetPriority)
#define cuStreamGetId SIMCUDA_PTSZ(cuStreamGetId)
#define cuStreamGetFlags SIMCUDA_PTSZ(cuStreamGetFlags)
#define cuStreamGetDevice SIMCUDA_PTSZ(cuStreamGetDevice)
#define cuStreamGetCtx SIMCUDA_PTSZ(cuStreamGetCtx)
#define cuStreamWaitEvent SIMCUDA_PTSZ(cuStreamWaitEvent)
#define cuStreamGetCtx_v2 SIMCUDA_PTSZ(cuStreamGetCtx_v2)
#define cuStreamBeginCaptureToGraph SIMCUDA_PTSZ(cuStreamBeginCaptureToGraph)
#define cuStreamEndCapture SIMCUDA_PTSZ(cuStreamEndCapture)
#define cuGraphInstantiateWithParams SIMCUDA_PTSZ(cuGraphInstantiateWithParams)
#define cuGraphUpload SIMCUDA_PTSZ(cuGraphUpload)
#define cuGraphLaunch SIMCUDA_PTSZ(cuGraphLaunch)
#define cuStreamIsCapturing SIMCUDA_PTSZ(cuStreamIsCapturing)
#define cuStreamAddCallback SIMCUDA_PTSZ(cuStreamAddCallback)
#define cuStreamAttachMemAsync SIMCUDA_PTSZ(cuStreamAttachMemAsync)
#define cuStreamQuery SIMCUDA_PTSZ(cuStreamQuery)
#define cuStreamSynchronize SIMCUDA_PTSZ(cuStreamSynchronize)
#define cuEventRecord SIMCUDA_PTSZ(cuEventRecord)
#define cuEventRecordWithFlags SIMCUDA_PTSZ(cuEventRecordWithFlags)
#define cuLaunchKernel SIMCUDA_PTSZ(cuLaunchKernel)
#define cuLaunchKernelEx SIMCUDA_PTSZ(cuLaunchKernelEx)
#define cuLaunchHostFunc SIMCUDA_PTSZ(cuLaunchHostFunc)
#define cuLaunchCooperativeKernel SIMCUDA_PTSZ(cuLaunchCooperativeKernel)
#define cuMemAllocAsync SIMCUDA_PTSZ(cuMemAllocAsync)
#define cuMemAllocFromPoolAsync SIMCUDA_PTSZ(cuMemAllocFromPoolAsync)
#define cuMemFreeAsync SIMCUDA_PTSZ(cuMemFreeAsync)
#endif

#endif /* SIMCUDA_NAMES_H_ */

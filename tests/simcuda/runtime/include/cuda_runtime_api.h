/* The CUDA runtime API as the small runtime of the simulated machine implements it, C and C++: NVIDIA's names,
 * values and signatures (13.0), independently written; cudaDeviceProp is a subset. The same source builds against
 * NVIDIA's headers. Threads: every function from any thread. Errors: as cudaError_t, and kept per thread for
 * cudaGetLastError. */
#ifndef SIMCUDART_CUDA_RUNTIME_API_H_
#define SIMCUDART_CUDA_RUNTIME_API_H_

#include <stddef.h>

#define CUDART_VERSION 13000

#ifdef SIMCUDART_BUILD_SHARED
#define SIMCUDART_API __attribute__((visibility("default")))
#else
#define SIMCUDART_API /* the static flavour stays hidden in its executable or library, so that two copies never \
                         conflict */
#endif

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorCallRequiresNewerDriver = 36,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorDeviceUninitialized = 201,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2
};

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostRegisterDefault 0x00
#define cudaMemAttachGlobal 0x01
#define cudaMemAttachHost 0x02
#define cudaEnableDefault 0x0
#define cudaEnableLegacyStream 0x1
#define cudaEnablePerThreadDefaultStream 0x2

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *userData);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

typedef struct cudaUUID_st {
  char bytes[16];
} cudaUUID_t;

/* Filled when the runtime starts and never updated: a program sees the driver's answers of that time. */
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem;
  int major;
  int minor;
  int multiProcessorCount;
  int maxThreadsPerBlock;
  int warpSize;
};

struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
};

#ifdef __cplusplus
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_size = 1, unsigned int y_size = 1, unsigned int z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};
extern "C" {
#define SIMCUDART_DEFAULT(value) = value
#else
typedef struct dim3 {
  unsigned int x, y, z;
} dim3;
typedef enum cudaMemcpyKind cudaMemcpyKind;
#define SIMCUDART_DEFAULT(value)
#endif

/* Devices. The first call of any function below starts the runtime; cudaSetDevice also creates the context. */
SIMCUDART_API cudaError_t cudaRuntimeGetVersion(int *version);
SIMCUDART_API cudaError_t cudaDriverGetVersion(int *version);
SIMCUDART_API cudaError_t cudaGetDeviceCount(int *count);
SIMCUDART_API cudaError_t cudaSetDevice(int device);
SIMCUDART_API cudaError_t cudaGetDevice(int *device);
SIMCUDART_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
SIMCUDART_API cudaError_t cudaDeviceSynchronize(void);
SIMCUDART_API cudaError_t cudaDeviceReset(void);

/* Errors */
SIMCUDART_API cudaError_t cudaGetLastError(void);
SIMCUDART_API cudaError_t cudaPeekAtLastError(void);
SIMCUDART_API const char *cudaGetErrorName(cudaError_t error);
SIMCUDART_API const char *cudaGetErrorString(cudaError_t error);

/* Memory: sizes in bytes. A refused allocation sets the pointer to null. */
SIMCUDART_API cudaError_t cudaMalloc(void **pointer, size_t bytes);
SIMCUDART_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
SIMCUDART_API cudaError_t cudaMallocManaged(void **pointer, size_t bytes,
                                            unsigned int flags SIMCUDART_DEFAULT(cudaMemAttachGlobal));
SIMCUDART_API cudaError_t cudaFree(void *pointer);
SIMCUDART_API cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
SIMCUDART_API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
SIMCUDART_API cudaError_t cudaMallocHost(void **pointer, size_t bytes);
SIMCUDART_API cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags);
SIMCUDART_API cudaError_t cudaFreeHost(void *pointer);
SIMCUDART_API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags);
SIMCUDART_API cudaError_t cudaHostUnregister(void *pointer);
SIMCUDART_API cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags);
SIMCUDART_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
SIMCUDART_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

/* Copies and fills */
SIMCUDART_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
SIMCUDART_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream SIMCUDART_DEFAULT(0));
SIMCUDART_API cudaError_t cudaMemset(void *pointer, int value, size_t bytes);
SIMCUDART_API cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes,
                                          cudaStream_t stream SIMCUDART_DEFAULT(0));
SIMCUDART_API cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);

/* Streams and events. Elapsed time is in milliseconds. */
SIMCUDART_API cudaError_t cudaStreamCreate(cudaStream_t *stream);
SIMCUDART_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
SIMCUDART_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
SIMCUDART_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
SIMCUDART_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
SIMCUDART_API cudaError_t cudaStreamQuery(cudaStream_t stream);
SIMCUDART_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
SIMCUDART_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
SIMCUDART_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned int flags SIMCUDART_DEFAULT(0));
SIMCUDART_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);
SIMCUDART_API cudaError_t cudaEventCreate(cudaEvent_t *event);
SIMCUDART_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
SIMCUDART_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream SIMCUDART_DEFAULT(0));
SIMCUDART_API cudaError_t cudaEventQuery(cudaEvent_t event);
SIMCUDART_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
SIMCUDART_API cudaError_t cudaEventDestroy(cudaEvent_t event);
SIMCUDART_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

/* Kernels, and the driver's own functions by name */
SIMCUDART_API cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes, cudaStream_t stream);
SIMCUDART_API cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *status SIMCUDART_DEFAULT(NULL));

/* Not in NVIDIA's API: registers the kernel `name` for launches of the host address `function`, as nvcc's generated
 * code does. REQUIRES: before any launch of `function`; `name` lives for ever; at most 256 functions. */
SIMCUDART_API cudaError_t simcudart_register_kernel(const void *function, const char *name);

#ifdef __cplusplus
}
#endif
#undef SIMCUDART_DEFAULT

#endif /* SIMCUDART_CUDA_RUNTIME_API_H_ */

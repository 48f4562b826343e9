/* The driver's binary interface for launches. Types only, C and C++; checked against cuda.h where it is installed
 * (tests/unit/driver/abi_test.cc).
 * Layer: none. Source of every value: cuda.h 13.0. */
#ifndef RATION_DRIVER_LAUNCH_ABI_H_
#define RATION_DRIVER_LAUNCH_ABI_H_

#include "driver/abi.h"

/* Only passed on. */
typedef struct CUfunc_st *CUfunction;
typedef struct CUlaunchConfig_st CUlaunchConfig;
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;
typedef uint32_t cuuint32_t;
typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream hStream, CUresult status, void *userData);

#endif /* RATION_DRIVER_LAUNCH_ABI_H_ */

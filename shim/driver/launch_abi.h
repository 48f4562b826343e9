/* The driver's binary interface for code and launches. Types only, C and C++; checked against cuda.h where it is
 * installed (tests/unit/driver/abi_test.cc). Layer: none. Source of every value: cuda.h 13.0. */
#ifndef RATION_DRIVER_LAUNCH_ABI_H_
#define RATION_DRIVER_LAUNCH_ABI_H_

#include "driver/abi.h"

/* Ration only passes these on. */
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlaunchConfig_st CUlaunchConfig;
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;
typedef uint32_t cuuint32_t;
typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream hStream, CUresult status, void *userData);

/* Options of the just-in-time compiler. */
typedef enum CUjit_option_enum { CU_JIT_MAX_REGISTERS = 0, CU_JIT_THREADS_PER_BLOCK = 1 } CUjit_option;

typedef enum CUlimit_enum {
  CU_LIMIT_STACK_SIZE = 0x00,
  CU_LIMIT_PRINTF_FIFO_SIZE = 0x01,
  CU_LIMIT_MALLOC_HEAP_SIZE = 0x02,
  CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 0x03,
  CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 0x04,
  CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 0x05,
  CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 0x06,
  CU_LIMIT_SHMEM_SIZE = 0x07,
  CU_LIMIT_CIG_ENABLED = 0x08,
  CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 0x09,
  CU_LIMIT_MAX
} CUlimit;

#endif /* RATION_DRIVER_LAUNCH_ABI_H_ */

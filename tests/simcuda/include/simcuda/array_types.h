/* The types of cuda.h 13.0 for CUDA arrays that only programs and the simulator need; the others are in
 * driver/array_abi.h. Checked against cuda.h (tests/unit/driver/abi_test.cc). C and C++. */
#ifndef SIMCUDA_ARRAY_TYPES_H_
#define SIMCUDA_ARRAY_TYPES_H_

#include "driver/array_abi.h"
#include "simcuda/types.h"

typedef struct CUDA_ARRAY_SPARSE_PROPERTIES_st {
  struct {
    unsigned int width;
    unsigned int height;
    unsigned int depth;
  } tileExtent;
  unsigned int miptailFirstLevel;
  unsigned long long miptailSize;
  unsigned int flags;
  unsigned int reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;

#define CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL 0x1
#define CU_MEM_CREATE_USAGE_TILE_POOL 0x1

#endif /* SIMCUDA_ARRAY_TYPES_H_ */

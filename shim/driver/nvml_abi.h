/* NVML's binary interface as Ration uses it: our own declarations, so that no toolkit is needed to build. Types and
 * values only, C and C++. Layer: none. Source: the NVML reference manual, R590; these declarations have not
 * changed since the functions were introduced. */
#ifndef RATION_DRIVER_NVML_ABI_H_
#define RATION_DRIVER_NVML_ABI_H_

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef enum nvmlReturn_enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_UNKNOWN = 999 /* so that every code of the library is a value of the type */
} nvmlReturn_t;

/* Bytes; total = free + used. */
typedef struct nvmlMemory_st {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
} nvmlMemory_t;

/* Bytes; total = reserved + free + used. */
typedef struct nvmlMemory_v2_st {
  unsigned int version; /* the layout that the caller uses; checked by the library */
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
} nvmlMemory_v2_t;

/* Used by nvmlDeviceGetPciInfo_v3. */
typedef struct nvmlPciInfo_st {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
} nvmlPciInfo_t;

/* An entry of a process list in its first version. If all bits of usedGpuMemory are set, the size is unknown. */
typedef struct nvmlProcessInfo_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* An entry of a process list in its second and third version. */
typedef struct nvmlProcessInfo_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
} nvmlProcessInfo_t;

/* Used by nvmlDeviceGetRunningProcessDetailList. */
typedef struct nvmlProcessDetail_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory; /* part of usedGpuMemory */
} nvmlProcessDetail_v1_t;

typedef struct nvmlProcessDetailList_v1_st {
  unsigned int version;
  unsigned int mode; /* compute, graphics, MPS */
  unsigned int numProcArrayEntries;
  nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;

/* Used by nvmlDeviceGetAccountingStats. */
typedef struct nvmlAccountingStats_st {
  unsigned int gpuUtilization;
  unsigned int memoryUtilization;    /* percent of the time */
  unsigned long long maxMemoryUsage; /* bytes */
  unsigned long long time;
  unsigned long long startTime;
  unsigned int isRunning;
  unsigned int reserved[5];
} nvmlAccountingStats_t;

#endif /* RATION_DRIVER_NVML_ABI_H_ */

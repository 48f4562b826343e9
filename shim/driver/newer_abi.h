/* Additions to the driver's binary interface since cuda.h 13.0, so cuda.h cannot check them. Types only, C and
 * C++. This file includes nothing, so that it can also follow cuda.h; it needs the types of abi.h or cuda.h before it.
 * Layer: none. Source: the declarations of NVIDIA's Python bindings (cuda-bindings) 13.1 to 13.5, cydriver.pxd. */
#ifndef RATION_DRIVER_NEWER_ABI_H_
#define RATION_DRIVER_NEWER_ABI_H_

/* Ration only passes these on. */
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;
typedef struct CUgraphNodeParams_st CUgraphNodeParams;
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;

/* Called for each node whose parameters have changed since it was last captured. */
typedef enum CUgraphRecaptureStatus_enum {
  CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0,
  CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1,
  CU_GRAPH_RECAPTURE_ERROR = 2
} CUgraphRecaptureStatus;
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node, const CUgraphNodeParams *originalParams,
                                             const CUgraphNodeParams *recaptureParams, CUgraphRecaptureStatus status);

#endif /* RATION_DRIVER_NEWER_ABI_H_ */

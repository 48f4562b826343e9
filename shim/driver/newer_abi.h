/* What the driver's binary interface has gained since cuda.h 13.0, which it cannot be checked against. Types only, C
 * and C++; includes nothing, so that it goes with cuda.h, too: needs the types of abi.h before it. Layer: none. Source:
 * the declarations of NVIDIA's Python bindings (cuda-bindings) 13.1 to 13.5, cydriver.pxd. */
#ifndef RATION_DRIVER_NEWER_ABI_H_
#define RATION_DRIVER_NEWER_ABI_H_

/* Only passed on. */
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;
typedef struct CUgraphNodeParams_st CUgraphNodeParams;
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;

/* Called for each node that was made with other parameters before. */
typedef enum CUgraphRecaptureStatus_enum {
  CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0,
  CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1,
  CU_GRAPH_RECAPTURE_ERROR = 2
} CUgraphRecaptureStatus;
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node, const CUgraphNodeParams *originalParams,
                                             const CUgraphNodeParams *recaptureParams, CUgraphRecaptureStatus status);

#endif /* RATION_DRIVER_NEWER_ABI_H_ */

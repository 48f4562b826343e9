/* What the driver has gained since CUDA 13.0, by ELF export name. Read by C, C++ and by generate.py, which generates an
 * exported entry point for each. There is no toolkit header to check them against; newer_abi.h says where they come
 * from.
 */
#ifndef SIMCUDA_API_NEWER_H_
#define SIMCUDA_API_NEWER_H_

#include "driver/graph_abi.h"
#include "driver/launch_abi.h"
#include "driver/newer_abi.h"
#include "simcuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

CUresult cuStreamBeginCaptureToCig(CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams);
CUresult cuStreamBeginCaptureToCig_ptsz(CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams);
CUresult cuStreamEndCaptureToCig(CUstream hStream);
CUresult cuStreamEndCaptureToCig_ptsz(CUstream hStream);
CUresult cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                       CUgraphRecaptureCallback callbackFunc, void *userData);
CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                            CUgraphRecaptureCallback callbackFunc, void *userData);
CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams);
CUresult cuLaunchHostFunc_v2(CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode);
CUresult cuLaunchHostFunc_v2_ptsz(CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode);

#ifdef __cplusplus
}
#endif

#endif /* SIMCUDA_API_NEWER_H_ */

// Stream capture begins and ends, streams go, contexts are synchronised: what the quarantine must know of.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::hooks::kAbsent;

extern "C" {

CUresult cuStreamBeginCapture(CUstream hStream) {
  return real.cuStreamBeginCapture.present() ? real.cuStreamBeginCapture(hStream) : kAbsent;
}
CUresult cuStreamBeginCapture_ptsz(CUstream hStream) {
  return real.cuStreamBeginCapture_ptsz.present() ? real.cuStreamBeginCapture_ptsz(hStream) : kAbsent;
}
CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return real.cuStreamBeginCapture_v2.present() ? real.cuStreamBeginCapture_v2(hStream, mode) : kAbsent;
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return real.cuStreamBeginCapture_v2_ptsz.present() ? real.cuStreamBeginCapture_v2_ptsz(hStream, mode) : kAbsent;
}
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return real.cuStreamBeginCaptureToGraph.present()
             ? real.cuStreamBeginCaptureToGraph(hStream, hGraph, dependencies, dependencyData, numDependencies, mode)
             : kAbsent;
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  return real.cuStreamBeginCaptureToGraph_ptsz.present()
             ? real.cuStreamBeginCaptureToGraph_ptsz(hStream, hGraph, dependencies, dependencyData, numDependencies,
                                                     mode)
             : kAbsent;
}
CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
  return real.cuStreamEndCapture.present() ? real.cuStreamEndCapture(hStream, phGraph) : kAbsent;
}
CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph) {
  return real.cuStreamEndCapture_ptsz.present() ? real.cuStreamEndCapture_ptsz(hStream, phGraph) : kAbsent;
}
CUresult cuStreamDestroy(CUstream hStream) {
  return real.cuStreamDestroy.present() ? real.cuStreamDestroy(hStream) : kAbsent;
}
CUresult cuStreamDestroy_v2(CUstream hStream) {
  return real.cuStreamDestroy_v2.present() ? real.cuStreamDestroy_v2(hStream) : kAbsent;
}
CUresult cuCtxSynchronize() {
  return real.cuCtxSynchronize.present() ? real.cuCtxSynchronize() : kAbsent;
}
CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return real.cuCtxSynchronize_v2.present() ? real.cuCtxSynchronize_v2(ctx) : kAbsent;
}
CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return real.cuGreenCtxCreate.present() ? real.cuGreenCtxCreate(phCtx, desc, dev, flags) : kAbsent;
}
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return real.cuGreenCtxDestroy.present() ? real.cuGreenCtxDestroy(hCtx) : kAbsent;
}
CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
  return real.cuCtxFromGreenCtx.present() ? real.cuCtxFromGreenCtx(pContext, hCtx) : kAbsent;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  return real.cuIpcGetMemHandle.present() ? real.cuIpcGetMemHandle(pHandle, dptr) : kAbsent;
}

}  // extern "C"

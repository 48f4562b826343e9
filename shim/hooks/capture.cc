// Begin and end of captures, destruction of streams, synchronisation of contexts: the events that decide when a freed
// block is clean.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/unknown_capture.h"
#include "policy/calls/sync_and_capture.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::policy::SyncAndCapture;

namespace {

// Calls `method` with the stream that the call means, and has it make the driver's call.
template <class Method, class Slot, class... Arguments>
CUresult around(Method method, CUstream meant, const Slot &slot, Arguments... arguments) {
  return forwarding<SyncAndCapture>(
      slot, [=](SyncAndCapture &calls, const auto &call) { return (calls.*method)(meant, call); }, arguments...);
}

}  // namespace

void ration::hooks::note_unknown_capture(const char *name) noexcept {
  if (ration::runtime::Runtime::existing() != nullptr) {
    ration::runtime::family<SyncAndCapture>->begin_unknown_capture(name);
  }
}

extern "C" {

CUresult cuStreamBeginCapture(CUstream hStream) {
  return around(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCapture, hStream);
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream) {
  return around(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCapture_ptsz, hStream);
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return around(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCapture_v2, hStream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return around(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCapture_v2_ptsz, hStream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return around(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCaptureToGraph, hStream, hGraph,
                dependencies, dependencyData, numDependencies, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  return around(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCaptureToGraph_ptsz, hStream,
                hGraph, dependencies, dependencyData, numDependencies, mode);
}

CUresult cuStreamBeginCaptureToCig(CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams) {
  return around(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCaptureToCig, hStream,
                streamCigCaptureParams);
}

CUresult cuStreamBeginCaptureToCig_ptsz(CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams) {
  return around(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCaptureToCig_ptsz, hStream,
                streamCigCaptureParams);
}

CUresult cuStreamEndCaptureToCig(CUstream hStream) {
  return around(&SyncAndCapture::end_capture, legacy(hStream), real.cuStreamEndCaptureToCig, hStream);
}

CUresult cuStreamEndCaptureToCig_ptsz(CUstream hStream) {
  return around(&SyncAndCapture::end_capture, per_thread(hStream), real.cuStreamEndCaptureToCig_ptsz, hStream);
}

CUresult cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                       CUgraphRecaptureCallback callbackFunc, void *userData) {
  return around(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginRecaptureToGraph, hStream, mode,
                hGraph, callbackFunc, userData);
}

CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                            CUgraphRecaptureCallback callbackFunc, void *userData) {
  return around(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginRecaptureToGraph_ptsz, hStream,
                mode, hGraph, callbackFunc, userData);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
  return around(&SyncAndCapture::end_capture, legacy(hStream), real.cuStreamEndCapture, hStream, phGraph);
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph) {
  return around(&SyncAndCapture::end_capture, per_thread(hStream), real.cuStreamEndCapture_ptsz, hStream, phGraph);
}

CUresult cuStreamDestroy(CUstream hStream) {
  return around(&SyncAndCapture::destroy_stream, hStream, real.cuStreamDestroy, hStream);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  return around(&SyncAndCapture::destroy_stream, hStream, real.cuStreamDestroy_v2, hStream);
}

CUresult cuCtxSynchronize(void) {
  return forwarding<SyncAndCapture>(
      real.cuCtxSynchronize, [](SyncAndCapture &calls, const auto &call) { return calls.synchronise(nullptr, call); });
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return forwarding<SyncAndCapture>(
      real.cuCtxSynchronize_v2, [=](SyncAndCapture &calls, const auto &call) { return calls.synchronise(ctx, call); },
      ctx);
}

}  // extern "C"

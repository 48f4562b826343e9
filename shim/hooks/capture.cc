// Stream capture begins and ends, streams go, contexts are synchronised: what the quarantine must know of.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/streams.h"
#include "policy/calls/sync_and_capture.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::policy::SyncAndCapture;

namespace {

// One call about a stream: the driver's slot with all of its arguments, inside the policy's method for `meant`.
template <class Method, class Slot, class... Arguments>
CUresult watched(Method method, CUstream meant, const Slot &slot, Arguments... arguments) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(arguments...); };
  return forwarding<SyncAndCapture>(call, [&](SyncAndCapture &calls) { return (calls.*method)(meant, call); });
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture(CUstream hStream) {
  return watched(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCapture, hStream);
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream) {
  return watched(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCapture_ptsz, hStream);
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return watched(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCapture_v2, hStream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return watched(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCapture_v2_ptsz, hStream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return watched(&SyncAndCapture::begin_capture, legacy(hStream), real.cuStreamBeginCaptureToGraph, hStream, hGraph,
                 dependencies, dependencyData, numDependencies, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  return watched(&SyncAndCapture::begin_capture, per_thread(hStream), real.cuStreamBeginCaptureToGraph_ptsz, hStream,
                 hGraph, dependencies, dependencyData, numDependencies, mode);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
  return watched(&SyncAndCapture::end_capture, legacy(hStream), real.cuStreamEndCapture, hStream, phGraph);
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph) {
  return watched(&SyncAndCapture::end_capture, per_thread(hStream), real.cuStreamEndCapture_ptsz, hStream, phGraph);
}

CUresult cuStreamDestroy(CUstream hStream) {
  return watched(&SyncAndCapture::destroy_stream, hStream, real.cuStreamDestroy, hStream);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  return watched(&SyncAndCapture::destroy_stream, hStream, real.cuStreamDestroy_v2, hStream);
}

CUresult cuCtxSynchronize(void) {
  if (!real.cuCtxSynchronize.present()) {
    return kAbsent;
  }
  const auto call = [] { return real.cuCtxSynchronize(); };
  return forwarding<SyncAndCapture>(call, [&](SyncAndCapture &calls) { return calls.synchronise(nullptr, call); });
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  if (!real.cuCtxSynchronize_v2.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuCtxSynchronize_v2(ctx); };
  return forwarding<SyncAndCapture>(call, [&](SyncAndCapture &calls) { return calls.synchronise(ctx, call); });
}

}  // extern "C"

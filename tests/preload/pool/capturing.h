// Begins and ends a capture in every way that the driver has. Layer: verdict.h. Threads: the capturing one.
#pragma once

#include <cstdint>

#include "verdict.h"

namespace preload::pool {

// `choice`: whether the capture makes its graph or goes into one created before, which *graph is then set to; and
// whether the plain exports are called or those for the per-thread stream.
inline bool begin(CUstream stream, CUstreamCaptureMode mode, std::uint64_t choice, CUgraph *graph, Verdict &verdict) {
  const bool own_export = stream == CU_STREAM_PER_THREAD && choice % 2 == 0;
  if (choice / 2 % 3 == 0) {
    if (!verdict.succeeded("cuGraphCreate", cuGraphCreate(graph, 0))) return false;
    return verdict.succeeded("cuStreamBeginCaptureToGraph",
                             own_export ? cuStreamBeginCaptureToGraph_ptsz(nullptr, *graph, nullptr, nullptr, 0, mode)
                                        : cuStreamBeginCaptureToGraph(stream, *graph, nullptr, nullptr, 0, mode));
  }
  // The first version of the function has only the global mode.
  if (choice / 2 % 3 == 1 && mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return verdict.succeeded("cuStreamBeginCapture",
                             own_export ? cuStreamBeginCapture_ptsz(nullptr) : cuStreamBeginCapture(stream));
  }
  return verdict.succeeded("cuStreamBeginCapture_v2", own_export ? cuStreamBeginCapture_v2_ptsz(nullptr, mode)
                                                                 : cuStreamBeginCapture_v2(stream, mode));
}

inline bool end(CUstream stream, CUgraph *graph, Verdict &verdict) {
  return verdict.succeeded("cuStreamEndCapture", stream == CU_STREAM_PER_THREAD
                                                     ? cuStreamEndCapture_ptsz(nullptr, graph)
                                                     : cuStreamEndCapture(stream, graph));
}

// Begins a capture that goes into the graph of a finished capture.
inline bool begin_again(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, Verdict &verdict) {
  return verdict.succeeded("cuStreamBeginRecaptureToGraph",
                           stream == CU_STREAM_PER_THREAD
                               ? cuStreamBeginRecaptureToGraph_ptsz(nullptr, mode, graph, nullptr, nullptr)
                               : cuStreamBeginRecaptureToGraph(stream, mode, graph, nullptr, nullptr));
}

// Begins a capture for a graphics interface, which simcuda does not check. It yields no graph.
inline bool begin_to_graphics(CUstream stream, Verdict &verdict) {
  char parameters[16] = {};
  auto *const opaque = reinterpret_cast<CUstreamCigCaptureParams *>(parameters);
  return verdict.succeeded("cuStreamBeginCaptureToCig", stream == CU_STREAM_PER_THREAD
                                                            ? cuStreamBeginCaptureToCig_ptsz(nullptr, opaque)
                                                            : cuStreamBeginCaptureToCig(stream, opaque));
}

inline bool end_to_graphics(CUstream stream, Verdict &verdict) {
  return verdict.succeeded("cuStreamEndCaptureToCig", stream == CU_STREAM_PER_THREAD
                                                          ? cuStreamEndCaptureToCig_ptsz(nullptr)
                                                          : cuStreamEndCaptureToCig(stream));
}

}  // namespace preload::pool

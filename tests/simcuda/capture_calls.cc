// The stream-capture calls of the public API. Layer: capture.h. Threads: any.
#include <algorithm>
#include <utility>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/graph_build.h"

namespace simcuda {
namespace {

bool known(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult begin(CUstream handle, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, const Frontier &after,
               Lock &lock) {
  if (!known(mode)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, handle, &stream); error != CUDA_SUCCESS) return error;
  if (stream->kind == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  begin_capture(lock, *stream, mode, std::move(graph), after);
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const Stream &stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// A query of the legacy stream during a blocking stream's capture is refused as well, but invalidates nothing.
CUresult find_asked(Lock &lock, CUstream handle, const CUstreamCaptureStatus *status, std::shared_ptr<Stream> *stream) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = find_stream(lock, handle, stream); error != CUDA_SUCCESS) return error;
  return hidden_by_capture(**stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult how_it_ended(const Stream &stream, const Capture &capture) {
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return joined(capture, stream.frontier) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

bool same_shape(const Graph &one, const Graph &other) {
  const auto place_of = [](const Graph &graph, const GraphNode *node) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto &own) { return own.get() == node; }) -
           graph.nodes.begin();
  };
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), other.nodes.end(),
                    [&](const auto &mine, const auto &its) {
                      return std::equal(mine->after.begin(), mine->after.end(), its->after.begin(), its->after.end(),
                                        [&](const GraphNode *before, const GraphNode *its_before) {
                                          return place_of(one, before) == place_of(other, its_before);
                                        });
                    });
}

// What was captured once more becomes the graph that it was before; no graph comes of what goes to a graphics
// interface.
CUresult finish(Capture &capture, CUresult result, CUgraph *handle) {
  const std::shared_ptr<Graph> again = capture.again;
  if (again != nullptr) {
    again->capturing = false;
    if (result == CUDA_SUCCESS && !same_shape(*again, *capture.graph)) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS) {
      std::swap(again->nodes, capture.graph->nodes);
      for (const auto &node : again->nodes) node->graph = again.get();
      *handle = handle_of(again.get());
    }
  } else if (result == CUDA_SUCCESS && !capture.to_graphics) {
    *handle = handle_of(capture.graph.get());
  }
  end(capture, *handle != nullptr && again == nullptr ? Fate::kKeep : Fate::kDrop);
  return result;
}

CUresult end_by(CUstream handle, bool to_graphics, CUgraph *graph) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, handle, &stream); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->to_graphics != to_graphics) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = nullptr;
  // The capture is over all the same (H100, H200, driver 580.159: its stream then captures nothing).
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread(lock)) {
    return finish(*capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, graph);
  }
  if (capture->streams.front() != stream.get()) {  // another caller may still end it
    refuse(*stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  return finish(*capture, how_it_ended(*stream, *capture), graph);
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream hStream) {
  return simcuda::cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  Lock lock(driver().mutex);
  return begin(hStream, mode, nullptr, {}, lock);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  if (dependencyData != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  Frontier after;
  const CUresult error = nodes_in(*graph, {dependencies, numDependencies}, &after);
  if (error != CUDA_SUCCESS) return error;
  return begin(hStream, mode, graph, after, lock);
}

// Any context is taken for one that shares a graphics interface's queue.
CUresult cuStreamBeginCaptureToCig(CUstream hStream, CUstreamCigCaptureParams *streamCigCaptureParams) {
  if (streamCigCaptureParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  const CUresult result = begin(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {}, lock);
  if (result == CUDA_SUCCESS) stream->capture->to_graphics = true;
  return result;
}

// The nodes must be the same in number and order; whether their parameters are is not looked at, so no callback is
// called.
CUresult cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                       CUgraphRecaptureCallback, void *) {
  Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  const CUresult result = begin(hStream, mode, nullptr, {}, lock);
  if (result == CUDA_SUCCESS) {
    stream->capture->again = graph;
    graph->capturing = true;
  }
  return result;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
  return phGraph != nullptr ? end_by(hStream, false, phGraph) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamEndCaptureToCig(CUstream hStream) {
  CUgraph none = nullptr;
  return end_by(hStream, true, &none);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_asked(lock, hStream, captureStatus, &stream); error != CUDA_SUCCESS) return error;
  *captureStatus = status_of(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out) {
  return simcuda::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                   CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                   size_t *numDependencies_out) {
  return simcuda::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                                            numDependencies_out);
}

// Edges of simulated graphs never carry data.
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                   CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                   const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out) {
  if (edgeData_out != nullptr && dependencies_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_asked(lock, hStream, captureStatus_out, &stream); error != CUDA_SUCCESS) return error;
  *captureStatus_out = status_of(*stream);
  if (*captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id_out != nullptr) *id_out = stream->capture->id;
  if (graph_out != nullptr) *graph_out = handle_of(stream->capture->graph.get());
  if (dependencies_out != nullptr) {
    // A node's handle is its address.
    static_assert(sizeof(CUgraphNode) == sizeof(stream->frontier[0]));
    *dependencies_out = reinterpret_cast<const CUgraphNode *>(stream->frontier.data());
  }
  if (edgeData_out != nullptr) *edgeData_out = nullptr;
  if (numDependencies_out != nullptr) *numDependencies_out = stream->frontier.size();
  return CUDA_SUCCESS;
}

// Takes any number, as H100 and H200 with driver 580.159 do.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
}

}  // namespace simcuda

// Stream capture: which streams capture, what a forbidden call does, and which captures it invalidates. The rules are
// cuda.h's (cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode) and the programming guide's ("Prohibited and
// Unhandled Operations"); where both are silent, the stricter reading applies (tests/simcuda/README.md).
// Layer: graph.h. Threads: under Driver::mutex, except the calling thread's own mode.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simcuda/graph.h"
#include "tests/simcuda/stream.h"

namespace simcuda {

struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;
  bool invalidated = false;
  std::shared_ptr<Graph> graph;   // null: the capture is over
  bool own_graph = true;          // false: the program supplied it
  bool to_graphics = false;       // ends without a graph
  std::shared_ptr<Graph> again;   // a graph captured once more; its nodes become those of `graph`
  std::size_t first_node = 0;     // from here on the graph's nodes belong to the capture
  std::vector<Stream *> streams;  // the first is the origin stream
  bool active() const { return graph != nullptr && !invalidated; }
  bool over() const { return graph == nullptr; }
};

using Frontier = std::vector<GraphNode *>;

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

void begin_capture(Lock &lock, Stream &stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, Frontier after);
// A stream that waits for captured work joins the capture.
void join(Stream &stream, const std::shared_ptr<Capture> &capture, const Frontier &after);
// Removes every stream from the capture.
enum class Fate : unsigned char { kKeep, kDrop };  // whether to keep a graph that the capture created
void end(Capture &capture, Fate graph);
// Called when a stream or context is destroyed, so that its capture can no longer be ended.
void forget_capture_of(Stream &stream);
// True if the next operation of the stream would depend on every captured node. Nodes that the program has added to the
// graph itself do not count.
bool joined(const Capture &capture, const Frontier &end);

// May work be queued in the stream, or captured there? If not: STREAM_CAPTURE_INVALIDATED, or STREAM_CAPTURE_IMPLICIT
// for the legacy stream while a blocking stream of the context captures; that capture is then invalidated.
CUresult may_use(const Stream &stream);
// May a call wait for the stream or query it?
CUresult may_ask(const Stream &stream);
// The same for a whole context; a primary context includes its green contexts.
CUresult may_ask(const Context &context);
// May an event of the context be recorded? Captures in a green context do not matter to its primary context.
CUresult may_record(const Context &context);
// May this thread make a call that a capture cannot record? STREAM_CAPTURE_UNSUPPORTED if not; the captures that forbid
// it are invalidated.
CUresult may_act_unseen();
// True if the legacy stream conflicts with a capturing blocking stream.
bool hidden_by_capture(const Stream &stream);

// Refuses an operation on a capturing stream and invalidates its capture.
CUresult refuse(const Stream &stream, CUresult error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

}  // namespace simcuda

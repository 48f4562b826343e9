// Stream capture: which streams capture, what becomes of a call that a capture forbids, and which captures it spoils.
// The rules are cuda.h's (cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode) and the programming guide's
// ("Prohibited and Unhandled Operations"); where both are silent, the stricter reading (README.md).
// Layer: graph.h. Threads: under Driver::mutex, but the calling thread's own mode.
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
  bool own_graph = true;          // false: the program brought it
  std::size_t first_node = 0;     // the graph's nodes from here on are the capture's
  std::vector<Stream *> streams;  // the first is where it began
  bool active() const { return graph != nullptr && !invalidated; }
  bool over() const { return graph == nullptr; }
};

using Frontier = std::vector<GraphNode *>;

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

void begin_capture(Lock &lock, Stream &stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, Frontier after);
// A stream that waits for something captured captures, too.
void join(Stream &stream, const std::shared_ptr<Capture> &capture, const Frontier &after);
// Takes every stream out of it.
enum class Fate : unsigned char { kKeep, kDrop };  // of a graph that the capture made
void end(Capture &capture, Fate graph);
// A stream or context that goes: nobody can end its capture any more.
void forget_capture_of(Stream &stream);
// Whether every captured node is among what the stream's next one would come behind.
bool joined(const Capture &capture, const Frontier &end);

// May work be queued in the stream, or be captured there? STREAM_CAPTURE_INVALIDATED; STREAM_CAPTURE_IMPLICIT: the
// legacy stream while a blocking stream of the context captures, which spoils that capture.
CUresult may_use(const Stream &stream);
// May a stream be waited for or asked about?
CUresult may_ask(const Stream &stream);
// The same of a context as a whole.
CUresult may_ask(const Context &context);
// May this thread make a call that a capture would not see? STREAM_CAPTURE_UNSUPPORTED, and the captures that forbid it
// are spoilt.
CUresult may_act_unseen();
// The legacy stream beside a blocking one that captures.
bool hidden_by_capture(const Stream &stream);

// Refuses an operation on a capturing stream and spoils its capture.
CUresult refuse(const Stream &stream, CUresult error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

}  // namespace simcuda

#include "tests/simcuda/capture.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool heeds_legacy(const Stream &stream) {
  return stream.kind == Stream::Kind::kBlocking || stream.kind == Stream::Kind::kPerThread;
}

void spoil(Capture &capture) {
  capture.invalidated = true;
}

// Does the capture forbid a thread in this mode to make calls that it cannot record?
bool forbids(const Capture &capture, std::uint64_t thread) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == thread) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

void begin_capture(Lock &lock, Stream &stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, Frontier after) {
  auto capture = std::make_shared<Capture>();
  capture->id = driver().next_id++;
  capture->mode = mode;
  capture->thread = this_thread(lock);
  capture->own_graph = graph == nullptr;
  if (capture->own_graph) {
    graph = std::make_shared<Graph>();
    publish(graph);
  }
  capture->graph = std::move(graph);
  capture->graph->capturing = true;
  capture->first_node = capture->graph->nodes.size();
  driver().captures.push_back(capture);
  join(stream, capture, after);
}

void join(Stream &stream, const std::shared_ptr<Capture> &capture, const Frontier &after) {
  if (stream.capture == nullptr) {
    capture->streams.push_back(&stream);
    stream.capture = capture;
  }
  for (GraphNode *node : after) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
      stream.frontier.push_back(node);
    }
  }
}

void end(Capture &capture, Fate graph) {
  capture.graph->capturing = false;
  if (capture.own_graph && graph == Fate::kDrop) driver().graphs.erase(capture.graph.get());
  capture.graph.reset();
  // Besides the caller, only the streams hold references.
  const std::vector<Stream *> streams = std::move(capture.streams);
  std::erase_if(driver().captures, [&](const auto &other) { return other.get() == &capture; });
  for (Stream *stream : streams) {
    stream->frontier.clear();
    stream->capture.reset();
  }
}

void forget_capture_of(Stream &stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  if (capture->streams.front() == &stream) {
    end(*capture, Fate::kDrop);
    return;
  }
  std::erase(capture->streams, &stream);
  stream.frontier.clear();
  stream.capture.reset();
}

bool joined(const Capture &capture, const Frontier &end) {
  std::unordered_set<GraphNode *> reached(end.begin(), end.end());
  Frontier open = end;
  while (!open.empty()) {
    GraphNode *node = open.back();
    open.pop_back();
    for (GraphNode *before : node->after) {
      if (reached.insert(before).second) open.push_back(before);
    }
  }
  const auto &nodes = capture.graph->nodes;
  return std::all_of(nodes.begin() + static_cast<std::ptrdiff_t>(capture.first_node), nodes.end(),
                     [&](const auto &node) { return !node->captured || reached.count(node.get()) != 0; });
}

bool hidden_by_capture(const Stream &stream) {
  const auto &streams = stream.context->streams;
  return stream.kind == Stream::Kind::kLegacy && std::any_of(streams.begin(), streams.end(), [](const auto &other) {
           return other->capture != nullptr && heeds_legacy(*other);
         });
}

CUresult refuse(const Stream &stream, CUresult error) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  spoil(*stream.capture);
  return error;
}

CUresult may_use(const Stream &stream) {
  if (stream.capture != nullptr && stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!hidden_by_capture(stream)) return CUDA_SUCCESS;
  for (const auto &other : stream.context->streams) {
    if (other->capture != nullptr && heeds_legacy(*other)) spoil(*other->capture);
  }
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult may_ask(const Stream &stream) {
  if (stream.capture != nullptr) {  // an invalidated one included (H100, H200, driver 580.159: 900, not 901)
    spoil(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult error = may_use(stream); error != CUDA_SUCCESS) return error;
  return may_act_unseen();
}

CUresult may_record(const Context &context) {
  bool capturing = false;
  for (const auto &stream : context.streams) {
    if (stream->capture == nullptr) continue;
    capturing = true;
    spoil(*stream->capture);
  }
  return capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult may_ask(const Context &context) {
  CUresult result = CUDA_SUCCESS;
  for (const Context *member : family(context)) {
    if (const CUresult error = may_record(*member); error != CUDA_SUCCESS) result = error;
  }
  return result;
}

CUresult may_act_unseen() {
  const std::uint64_t thread = this_thread_or_none();
  bool forbidden = false;
  for (const auto &capture : driver().captures) {
    if (!forbids(*capture, thread)) continue;
    forbidden = true;
    spoil(*capture);
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace simcuda

// Shared by the tests of captures and of contexts' events. A count is atomic, because several streams add to it.
#pragma once
#include <atomic>
#include <thread>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {

// Gives an unwanted event enough time to happen.
template <class Holds>
bool stays(Holds holds) {
  for (int look = 0; look < 2000; ++look) {
    if (!holds()) return false;
    std::this_thread::yield();
  }
  return true;
}

inline void add_one(void *number) {
  ++*static_cast<std::atomic<int> *>(number);
}

inline CUstreamCaptureStatus capture_status(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

inline void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  REQUIRE(cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
}

// The graph of a successful capture.
inline CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(graph != nullptr);
  return graph;
}

inline CUresult end_result(CUstream stream) {
  CUgraph graph = nullptr;
  const CUresult result = cuStreamEndCapture(stream, &graph);
  if (result != CUDA_SUCCESS) CHECK(graph == nullptr);
  if (graph != nullptr) cuGraphDestroy(graph);
  return result;
}

inline std::size_t nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  return count;
}

inline void launch(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  REQUIRE(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
}

// Sets the thread's capture mode for its own lifetime.
class ThreadMode {
 public:
  explicit ThreadMode(CUstreamCaptureMode mode) : mode_(mode) {
    REQUIRE(cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS);
  }
  ~ThreadMode() { cuThreadExchangeStreamCaptureMode(&mode_); }
  ThreadMode(const ThreadMode &) = delete;
  ThreadMode &operator=(const ThreadMode &) = delete;

 private:
  CUstreamCaptureMode mode_;
};

}  // namespace simcuda::conformance

// Kernels are captured into graphs and launched while another thread allocates, fills, verifies and frees; then graphs
// that allocate memory themselves. Each capture must stay valid.
#include <atomic>
#include <thread>

#include "pattern.h"

namespace {

constexpr std::size_t kBytes = std::size_t{8} << 20;
constexpr int kGraphs = 40;

std::atomic<bool> finished{false};
std::atomic<unsigned> turns{0};

void churn(Counters *counters) {
  Random random(99);
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  while (!finished) {
    const std::size_t bytes = random.bytes(9, 24);
    void *block = nullptr;
    MUST(cudaMalloc(&block, bytes));
    fill(block, bytes, 5, stream);
    verify(block, bytes, 5, counters, stream);
    MUST(cudaFree(block));
    ++turns;
  }
}

// Waits until the other thread has gone on, so that each capture meets some of its calls.
void await_turn() {
  const unsigned before = turns;
  while (turns == before) std::this_thread::yield();
}

void launch(cudaStream_t stream, cudaGraph_t graph) {
  cudaGraphExec_t ready = nullptr;
  MUST(cudaGraphInstantiate(&ready, graph, 0));
  for (int i = 0; i < 3; ++i) MUST(cudaGraphLaunch(ready, stream));
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaGraphExecDestroy(ready));
  MUST(cudaGraphDestroy(graph));
}

void capture_kernels(cudaStreamCaptureMode mode, const char *name, Counters *counters) {
  cudaStream_t stream = nullptr;
  void *block = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaMalloc(&block, kBytes));
  for (int i = 0; i < kGraphs; ++i) {
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, mode));
    fill(block, kBytes, 23, stream);
    await_turn();
    if (mode == cudaStreamCaptureModeRelaxed) {
      void *inside = nullptr;
      MUST(cudaMalloc(&inside, kBytes / 2));
      MUST(cudaFree(inside));
    }
    verify(block, kBytes, 23, counters, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    launch(stream, graph);
  }
  MUST(cudaFree(block));
  MUST(cudaStreamDestroy(stream));
  const Counters seen = read(counters);
  std::printf("%s: %d graphs, wrong %llu, checksum %016llx\n", name, kGraphs, seen.wrong, seen.sum);
}

void capture_memory(Counters *counters) {
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < kGraphs / 4; ++i) {
    cudaGraph_t graph = nullptr;
    void *block = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMallocAsync(&block, kBytes, stream));
    fill(block, kBytes, 29, stream);
    verify(block, kBytes, 29, counters, stream);
    MUST(cudaFreeAsync(block, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    launch(stream, graph);
  }
  MUST(cudaDeviceGraphMemTrim(0));
  MUST(cudaStreamDestroy(stream));
  const Counters seen = read(counters);
  std::printf("memory nodes: wrong %llu, checksum %016llx\n", seen.wrong, seen.sum);
}

}  // namespace

int main() {
  Counters *const mine = new_counters(), *const other = new_counters();
  void *block = nullptr;
  MUST(cudaMalloc(&block, 4096));
  fill(block, 4096, 1, nullptr);  // loads the kernels, which no capture may do
  verify(block, 4096, 1, mine, nullptr);
  MUST(cudaDeviceSynchronize());
  std::thread beside(churn, other);
  capture_kernels(cudaStreamCaptureModeThreadLocal, "thread-local", mine);
  capture_kernels(cudaStreamCaptureModeRelaxed, "relaxed", mine);
  capture_memory(mine);
  finished = true;
  beside.join();
  const bool all_right = read(mine).wrong == 0 && read(other).wrong == 0;
  std::printf("beside: %s\n", all_right ? "right" : "wrong");
  return all_right ? 0 : 3;
}

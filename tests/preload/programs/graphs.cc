// graphs SEED STEPS THREADS LIMIT: graphs that allocate, built node by node or captured, instantiated, uploaded,
// launched, trimmed and destroyed at random under a tight limit, beside plain blocks. After each step the simulated
// device holds at most LIMIT, and what each launch wrote is right. At the end the whole LIMIT can be had as one block.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr unsigned kWords = 256;  // that a graph writes to the program's block

std::atomic<bool> failed{false};
unsigned long long limit = 0;
CUcontext context = nullptr;

void fail(const char *what, unsigned long long figure) {
  if (!failed.exchange(true)) printf("%s: %llu\n", what, figure);
}

void must(CUresult code, const char *what) {
  if (code != CUDA_SUCCESS) fail(what, static_cast<unsigned long long>(code));
}

unsigned long long held() {
  simcuda_books books = {};
  simcuda_device_books(0, &books);
  return books.allocation_bytes + books.array_bytes + books.pool_bytes + books.physical_bytes + books.graph_bytes;
}

// A graph that fills `blocks` blocks of its own and copies the beginning of the last to `result`.
struct Graph {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<CUdeviceptr> left;  // blocks that it does not free
  CUdeviceptr result = 0;
  unsigned value = 0;
};

CUmemPoolProps on_device() {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return props;
}

class Worker {
 public:
  explicit Worker(unsigned seed) : random_(seed) {
    cuCtxSetCurrent(context);
    must(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "a stream");
    must(cuMemAlloc(&results_, kMost * kWords * 4), "the results");
  }

  void work(int steps) {
    for (int step = 0; step < steps && !failed; ++step) {
      const unsigned choice = below(100);
      if (graphs_.empty() || (choice < 20 && graphs_.size() < kMost)) {
        make();
      } else if (choice < 60) {
        launch(graphs_[below(graphs_.size())]);
      } else if (choice < 70) {
        upload(graphs_[below(graphs_.size())]);
      } else if (choice < 80) {
        end(below(graphs_.size()));
      } else if (choice < 85) {
        must(cuDeviceGraphMemTrim(0), "a trim");
      } else {
        plain();
      }
      if (const unsigned long long now = held(); now > limit) fail("the device holds", now);
    }
    while (!graphs_.empty()) end(graphs_.size() - 1);
    while (!blocks_.empty()) free_plain();
    must(cuMemFree(results_), "the results' free");
    must(cuStreamSynchronize(stream_), "the last synchronise");
    must(cuDeviceGraphMemTrim(0), "the last trim");
    cuStreamDestroy(stream_);
  }

 private:
  static constexpr size_t kMost = 6;  // graphs

  unsigned below(size_t end) { return static_cast<unsigned>(random_() % end); }
  size_t size() { return (1 + below(limit / kMiB / 5)) * kMiB / (below(4) == 0 ? 7 : 1); }

  void make() {
    Graph made;
    made.value = below(1U << 30);
    made.result = results_ + (next_++ % kMost) * kWords * 4;
    for (const Graph &other : graphs_) {
      if (other.result == made.result) return;  // in use
    }
    below(2) == 0 ? capture(made) : build(made);
    instantiate(made);
  }

  void capture(Graph &made) {
    must(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "a capture");
    const unsigned blocks = 1 + below(3);
    for (unsigned i = 0; i < blocks; ++i) {
      CUdeviceptr block = 0;
      must(cuMemAllocAsync(&block, size() + kWords * 4, stream_), "a captured allocation");
      must(cuMemsetD32Async(block, made.value + i, kWords, stream_), "a captured fill");
      if (i + 1 == blocks) {
        must(cuMemcpyDtoDAsync(made.result, block, kWords * 4, stream_), "a captured copy");
      }
      below(6) == 0 ? made.left.push_back(block) : must(cuMemFreeAsync(block, stream_), "a captured free");
    }
    must(cuStreamEndCapture(stream_, &made.graph), "the end of a capture");
    made.value += blocks - 1;
  }

  // Two blocks at once, then the last.
  void build(Graph &made) {
    must(cuGraphCreate(&made.graph, 0), "a graph");
    CUgraphNode last[2] = {};
    for (CUgraphNode &end : last) {
      CUdeviceptr block = 0;
      CUgraphNode node = allocate(made.graph, nullptr, 0, &block);
      must(cuGraphAddMemFreeNode(&end, made.graph, &node, 1, block), "a free node");
    }
    CUdeviceptr block = 0;
    CUgraphNode node = allocate(made.graph, last, 2, &block);
    CUDA_MEMSET_NODE_PARAMS fill = {block, 0, made.value, 4, kWords, 1};
    must(cuGraphAddMemsetNode(&node, made.graph, &node, 1, &fill, context), "a fill node");
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = block;
    copy.dstDevice = made.result;
    copy.WidthInBytes = kWords * 4;
    copy.Height = copy.Depth = 1;
    must(cuGraphAddMemcpyNode(&node, made.graph, &node, 1, &copy, context), "a copy node");
    must(cuGraphAddMemFreeNode(&node, made.graph, &node, 1, block), "the last free node");
  }

  CUgraphNode allocate(CUgraph graph, CUgraphNode *after, size_t count, CUdeviceptr *block) {
    CUgraphNode node = nullptr;
    if (below(2) == 0) {
      CUDA_MEM_ALLOC_NODE_PARAMS params = {};
      params.poolProps = on_device();
      params.bytesize = size() + kWords * 4;
      must(cuGraphAddMemAllocNode(&node, graph, after, count, &params), "an allocation node");
      *block = params.dptr;
    } else {
      CUgraphNodeParams params = {};
      params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
      params.alloc.poolProps = on_device();
      params.alloc.bytesize = size() + kWords * 4;
      must(cuGraphAddNode(&node, graph, after, nullptr, count, &params), "a node");
      *block = params.alloc.dptr;
    }
    return node;
  }

  void instantiate(Graph &made) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
    const bool uploads = below(8) == 0;
    params.flags = uploads ? CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD : 0;
    params.hUploadStream = stream_;
    const CUresult code = below(2) == 0 || uploads ? cuGraphInstantiateWithParams(&made.exec, made.graph, &params)
                                                   : cuGraphInstantiate(&made.exec, made.graph, 0);
    if (code == CUDA_SUCCESS) {
      graphs_.push_back(made);
    } else {
      if (code != CUDA_ERROR_OUT_OF_MEMORY) fail("an instantiation", code);
      cuGraphDestroy(made.graph);
    }
  }

  void launch(Graph &graph) {
    const unsigned times = 1 + below(3);
    for (unsigned i = 0; i < times; ++i) {
      const CUresult code = cuGraphLaunch(graph.exec, stream_);
      if (code == CUDA_ERROR_OUT_OF_MEMORY) return;
      must(code, "a launch");
      for (const CUdeviceptr block : graph.left) {
        must(below(2) == 0 ? cuMemFreeAsync(block, stream_) : cuMemFree(block), "a free of a graph's block");
      }
    }
    if (below(2) == 0) check(graph);
  }

  void check(const Graph &graph) {
    unsigned words[kWords] = {};
    must(cuStreamSynchronize(stream_), "a synchronise");
    must(cuMemcpyDtoH(words, graph.result, sizeof words), "a copy to the host");
    for (const unsigned word : words) {
      if (word != graph.value) return fail("a word of a graph", word);
    }
  }

  void upload(Graph &graph) {
    const CUresult code = cuGraphUpload(graph.exec, stream_);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY) fail("an upload", code);
  }

  void end(size_t which) {
    must(cuGraphExecDestroy(graphs_[which].exec), "a destroy");
    must(cuGraphDestroy(graphs_[which].graph), "a graph's destroy");
    graphs_[which] = graphs_.back();
    graphs_.pop_back();
  }

  void plain() {
    if (below(2) == 0 && !blocks_.empty()) return free_plain();
    CUdeviceptr block = 0;
    const CUresult code = cuMemAlloc(&block, size());
    if (code == CUDA_SUCCESS) {
      blocks_.push_back(block);
    } else if (code != CUDA_ERROR_OUT_OF_MEMORY) {
      fail("a plain allocation", code);
    }
  }

  void free_plain() {
    must(cuMemFree(blocks_.back()), "a plain free");
    blocks_.pop_back();
  }

  std::mt19937 random_;
  CUstream stream_ = nullptr;
  CUdeviceptr results_ = 0;
  size_t next_ = 0;
  std::vector<Graph> graphs_;
  std::vector<CUdeviceptr> blocks_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, nullptr, 0, 0) != CUDA_SUCCESS) return 1;
  limit = strtoull(argv[4], nullptr, 10);
  const int threads = atoi(argv[3]);
  const int steps = atoi(argv[2]) / threads;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([=] { Worker(static_cast<unsigned>(atoi(argv[1]) * 100 + i)).work(steps); });
  }
  for (std::thread &thread : all) thread.join();
  CUdeviceptr whole = 0;
  must(cuCtxSynchronize(), "the end");
  must(cuMemAlloc(&whole, limit), "the whole limit");
  if (!failed && held() > limit) fail("held at the end", held());
  printf("%d steps\n", steps * threads);
  return failed ? 3 : 0;
}

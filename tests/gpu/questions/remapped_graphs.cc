// An address gets other physical memory while an instantiated graph, or a handle of cuBLAS, knows the address: do their
// next launches use the new memory, and leave the old one alone?
#include <dlfcn.h>

#include <cstring>

#include "tests/gpu/questions/graph.h"
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kBytes = 2 * kGranule, kWords = kBytes / 4;
constexpr unsigned kFilled = 0x5eed;

// One address, and two sets of memory that take turns behind it: first one handle a granule, then one for all.
class Turning {
 public:
  Turning() {
    write(0, 1000);
    write(1, 2000);
    turn(0);
  }

  CUdeviceptr at() const { return range_.at(); }

  // Puts memory 0 or 1 at the address.
  void turn(int which) {
    if (mapped_ >= 0) unmap(range_, mapped_);
    map(range_, which);
    mapped_ = which;
  }

  // The word of a memory that is not at the address.
  unsigned word_of(int which, std::size_t offset) {
    unsigned word = 0;
    map(other_, which);
    must(cuMemcpyDtoH(&word, other_.at(offset), 4));
    unmap(other_, which);
    return word;
  }

 private:
  void map(Range &range, int which) {
    const Handles &handles = which == 0 ? parts_ : whole_;
    for (std::size_t i = 0; i < handles.count(); ++i) range.map(i * handles.bytes(), handles, i);
    must(allow(range.at(), kBytes));
  }
  void unmap(Range &range, int which) {
    const Handles &handles = which == 0 ? parts_ : whole_;
    for (std::size_t i = 0; i < handles.count(); ++i) range.unmap(i * handles.bytes());
  }
  void write(int which, unsigned value) {
    map(other_, which);
    must(cuMemsetD32(other_.at(), value, kWords));
    must(cuCtxSynchronize());
    unmap(other_, which);
  }

  Handles parts_{kGranule, kBytes / kGranule}, whole_{kBytes, 1};
  Range range_{kBytes}, other_{kBytes};
  int mapped_ = -1;
};

struct Scene {
  Scene() : stream(new_stream(cleanup)) {
    must(cuMemAlloc(&seen, kBytes));
    cleanup.add([this] { cuMemFree(seen); });
    must(cuMemAllocHost(&pinned, kBytes));
    cleanup.add([this] { cuMemFreeHost(pinned); });
    must(cuCtxGetCurrent(&context));
  }
  unsigned last_seen() const {
    unsigned word = 0;
    must(cuMemcpyDtoH(&word, seen + kBytes - 4, 4));
    return word;
  }

  Cleanup cleanup;
  CUstream stream;
  CUcontext context = nullptr;
  CUdeviceptr seen = 0;
  void *pinned = nullptr;
  Kernels kernels = load_kernels();
  Turning turning;
};

CUgraphExec finished(CUgraph graph, Cleanup &cleanup) {
  CUgraphExec exec = nullptr;
  must(cuGraphInstantiate(&exec, graph, 0));
  must(cuGraphDestroy(graph));
  cleanup.add([exec] { cuGraphExecDestroy(exec); });
  return exec;
}

CUgraphExec captured(const Scene &scene, Cleanup &cleanup, const std::function<void()> &work) {
  CUgraph graph = nullptr;
  must(cuStreamBeginCapture(scene.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  work();
  must(cuStreamEndCapture(scene.stream, &graph));
  return finished(graph, cleanup);
}

CUDA_MEMCPY3D copy_of(CUdeviceptr from) {
  CUDA_MEMCPY3D params = {};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = from;
  params.WidthInBytes = kBytes;
  params.Height = params.Depth = 1;
  return params;
}

// Launches before and after the turn; `seen` tells which word the graph saw at the end of the memory.
void turn_under(Test &test, const std::string &name, Scene &scene, CUgraphExec exec,
                const std::function<unsigned()> &seen) {
  scene.turning.turn(0);
  launch(exec, scene.stream);
  test.yes(name + ".sees_the_old_bytes_before", seen() == 1000);
  scene.turning.turn(1);
  test.code(name + ".launch_code", cuGraphLaunch(exec, scene.stream));
  test.code(name + ".synchronize_code", cuStreamSynchronize(scene.stream));
  test.yes(name + ".sees_the_new_bytes", seen() == 2000);
  scene.turning.turn(0);
  launch(exec, scene.stream);
  test.yes(name + ".sees_the_old_bytes_again", seen() == 1000);
}

void reading(Test &test) {
  Scene scene;
  Cleanup cleanup;
  const auto to_block = [&] { return scene.last_seen(); };
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  must(cuGraphCreate(&graph, 0));
  CUDA_MEMCPY3D params = copy_of(scene.turning.at());
  params.dstDevice = scene.seen;
  must(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, scene.context));
  turn_under(test, "copy", scene, finished(graph, cleanup), to_block);
  must(cuGraphCreate(&graph, 0));
  params.dstMemoryType = CU_MEMORYTYPE_HOST;
  params.dstDevice = 0;
  params.dstHost = scene.pinned;
  must(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, scene.context));
  turn_under(test, "copy_to_the_host", scene, finished(graph, cleanup),
             [&] { return static_cast<const unsigned *>(scene.pinned)[kWords - 1]; });
  turn_under(
      test, "captured_copy", scene,
      captured(scene, cleanup, [&] { must(cuMemcpyDtoDAsync(scene.seen, scene.turning.at(), kBytes, scene.stream)); }),
      to_block);
  turn_under(test, "captured_kernel", scene,
             captured(scene, cleanup,
                      [&] { must(copy(scene.kernels, scene.seen, scene.turning.at(), kWords, scene.stream)); }),
             to_block);
  const CUgraphExec uploaded = captured(
      scene, cleanup, [&] { must(copy(scene.kernels, scene.seen, scene.turning.at(), kWords, scene.stream)); });
  must(cuGraphUpload(uploaded, scene.stream));
  must(cuStreamSynchronize(scene.stream));
  turn_under(test, "uploaded_kernel", scene, uploaded, to_block);
  test.note("Graphs that read an address, launched before and after other memory is mapped there.");
}

void writing(Test &test) {
  Cleanup cleanup;
  Scene scene;
  const CUdeviceptr at = scene.turning.at();
  const auto fill_by = [&](const std::string &name, CUgraphExec exec, std::size_t probe) {
    scene.turning.turn(1);
    test.code(name + ".launch_code", cuGraphLaunch(exec, scene.stream));
    test.code(name + ".synchronize_code", cuStreamSynchronize(scene.stream));
    unsigned word = 0;
    must(cuMemcpyDtoH(&word, at + probe, 4));
    test.yes(name + ".writes_the_new_memory", word == kFilled);
    test.yes(name + ".leaves_the_old_memory", scene.turning.word_of(0, probe) == 1000);
    must(cuMemsetD32(at, 2000, kWords));
    must(cuCtxSynchronize());
    scene.turning.turn(0);
  };
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  must(cuGraphCreate(&graph, 0));
  const CUDA_MEMSET_NODE_PARAMS params = {at, 0, kFilled, 4, kWords, 1};
  must(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, scene.context));
  fill_by("fill", finished(graph, cleanup), kBytes - 4);
  fill_by("captured_fill", captured(scene, cleanup, [&] { must(cuMemsetD32Async(at, kFilled, kWords, scene.stream)); }),
          kBytes - 4);
  fill_by("captured_kernel",
          captured(scene, cleanup, [&] { must(fill(scene.kernels, at, kWords, kFilled, scene.stream)); }), 0);
  test.note("Graphs that write an address, instantiated over one memory and launched over another one.");
}

// cuBLAS of whatever version is found, by its C interface.
struct Blas {
  using Create = int (*)(void **);
  using SetStream = int (*)(void *, CUstream);
  using Gemm = int (*)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                       const float *, float *, int);
  using Destroy = int (*)(void *);

  Blas() {
    if (simulated()) skip("the simulated driver runs none of NVIDIA's libraries");
    for (const char *const name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so",
                                   "/usr/local/cuda/lib64/libcublas.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) skip("no libcublas");
    create = find<Create>("cublasCreate_v2");
    set_stream = find<SetStream>("cublasSetStream_v2");
    gemm = find<Gemm>("cublasSgemm_v2");
    destroy = find<Destroy>("cublasDestroy_v2");
  }
  template <class Function>
  Function find(const char *name) const {
    void *const found = dlsym(library, name);
    if (found == nullptr) skip(std::string("no ") + name);
    return reinterpret_cast<Function>(found);
  }

  void *library = nullptr;
  Create create = nullptr;
  SetStream set_stream = nullptr;
  Gemm gemm = nullptr;
  Destroy destroy = nullptr;
};

CUresult fill_floats(CUdeviceptr to, float value, std::size_t count) {
  unsigned bits = 0;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  return cuMemsetD32(to, bits, count);
}

// C = A * B of 256 x 256, where every element of A is 1 or 2 and every one of B is 1.
void blas(Test &test) {
  constexpr int kSide = 256;
  constexpr std::size_t kMatrix = std::size_t{kSide} * kSide * sizeof(float);
  const Blas blas;
  Scene scene;
  void *handle = nullptr;
  const int created = blas.create(&handle);
  test.number("create_status", created);
  if (created != 0) skip("no handle of cuBLAS");
  const CUdeviceptr a = scene.turning.at(), b = scene.seen, c = scene.seen + kMatrix;
  for (const int which : {1, 0}) {
    scene.turning.turn(which);
    must(fill_floats(a, which == 0 ? 1.f : 2.f, kSide * kSide));
  }
  must(fill_floats(b, 1.f, kSide * kSide));
  must(cuCtxSynchronize());
  const float one = 1, none = 0;
  const auto multiply = [&] {
    return blas.gemm(handle, 0, 0, kSide, kSide, kSide, &one, reinterpret_cast<const float *>(a), kSide,
                     reinterpret_cast<const float *>(b), kSide, &none, reinterpret_cast<float *>(c), kSide);
  };
  const auto result = [&] {
    float last = 0;
    must(cuMemcpyDtoH(&last, c + kMatrix - sizeof last, sizeof last));
    return last;
  };
  test.number("set_stream_status", blas.set_stream(handle, scene.stream));
  const auto run = [&](const std::string &name, const std::function<int()> &act, float expected) {
    test.number(name + "_status", act());
    test.code(name + "_synchronize_code", cuStreamSynchronize(scene.stream));
    test.yes(name + "_is_right", result() == expected);
  };
  run("before", multiply, kSide);
  Cleanup cleanup;
  CUgraphExec exec = nullptr;
  try {
    exec = captured(scene, cleanup, [&] { test.number("capture_status", multiply()); });
  } catch (const Stop &stop) {
    test.text("capture", stop.reason);
  }
  scene.turning.turn(1);
  run("after", multiply, 2 * kSide);
  must(cuMemsetD8(c, 0, kMatrix));
  if (exec != nullptr)
    run(
        "graph_after", [&] { return static_cast<int>(cuGraphLaunch(exec, scene.stream)); }, 2 * kSide);
  test.number("destroy_status", blas.destroy(handle));
  test.note("cublasSgemm with a handle, and in a graph, from before other memory was mapped under a matrix.");
}

}  // namespace

int main() {
  return question::run({{"reading", reading}, {"writing", writing}, {"blas", blas}});
}

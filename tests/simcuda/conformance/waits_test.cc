// Which calls wait for running work, and for whose. Source of every case: H100, H200, driver 580.159, 2026-11-26
// (tests/gpu/results, questions.waits.*, contexts.free_across, arrays.destroying), but where it says otherwise.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "tests/simcuda/conformance/graph.h"
#include "tests/simcuda/conformance/pool.h"
#include "tests/simcuda/conformance/shape.h"
#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

struct Ending {
  const char *name;
  std::function<CUresult()> call;
};

struct FreeLater {
  void operator()(void *memory) const { std::free(memory); }
};

// Blocks of the current context, each with the call that ends it.
std::vector<Ending> blocks() {
  std::vector<Ending> made;
  for (const std::size_t bytes : {std::size_t{4096}, 64 * kMiB}) {
    made.push_back({"cuMemFree", [address = device_memory(bytes)] { return cuMemFree(address); }});
  }
  return made;
}

// Everything else of it whose end waits; `pages` is registered.
std::vector<Ending> others(void *pages) {
  const auto array = [](unsigned flags) {
    return Ending{"cuArrayDestroy", [array = new_array(shape(64, 64, 0, flags))] { return cuArrayDestroy(array); }};
  };
  CUdeviceptr managed = 0;
  void *pinned = nullptr;
  REQUIRE(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocHost(&pinned, 4096) == CUDA_SUCCESS);
  REQUIRE(cuMemHostRegister(pages, 4096, 0) == CUDA_SUCCESS);
  const CUmipmappedArray levels = new_mipmapped(shape(64, 64), 3);
  return {{"cuMemFree of managed memory", [managed] { return cuMemFree(managed); }},
          {"cuMemFreeHost", [pinned] { return cuMemFreeHost(pinned); }},
          {"cuMemHostUnregister", [pages] { return cuMemHostUnregister(pages); }},
          array(0),
          array(CUDA_ARRAY3D_DEFERRED_MAPPING),
          // Assumed of the other kind of array.
          {"cuMipmappedArrayDestroy", [levels] { return cuMipmappedArrayDestroy(levels); }}};
}

// The state follows the name. False: it has ended, too. A stream would throw where it ends meanwhile.
bool is_asleep(pid_t thread) {
  std::FILE *const file = std::fopen(("/proc/self/task/" + std::to_string(thread) + "/stat").c_str(), "re");
  if (file == nullptr) return false;
  char text[512] = {};
  const std::size_t bytes = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  return bytes != 0 && std::strstr(text, ") S ") != nullptr;
}

// Whether the call, on a thread of the context, returns only once the gate is open. It is opened when the call has
// returned or sleeps; a real driver does not sleep, so there the call gets some time.
bool waits(const std::function<CUresult()> &end, CUcontext context, Gate &gate) {
  bool open = false;
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::atomic<pid_t> caller{0};
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    cuCtxSetCurrent(context);
    caller = ::gettid();
    result = end();
    open = gate.is_open();
    returned = true;
  });
  for (int look = 0; !returned && (simulator() ? caller == 0 || !is_asleep(caller) : look < 1000); ++look) {
    std::this_thread::yield();
  }
  gate.open();
  thread.join();
  return result == CUDA_SUCCESS && open;
}

void each_waits(const CurrentContext &context, const std::function<std::vector<Ending>()> &make) {
  for (const CUstream stream : {new_stream(), new_stream(CU_STREAM_NON_BLOCKING), CU_STREAM_LEGACY}) {
    for (const Ending &ending : make()) {
      INFO(ending.name << " beside stream " << stream);
      Gate gate;
      gate.hold(stream);
      CHECK(waits(ending.call, context.get(), gate));
    }
  }
}

using Pages = std::unique_ptr<void, FreeLater>;

TEST_CASE("the free of a block waits for the work of its context, in every stream", "[waits][block]") {
  const CurrentContext context;
  each_waits(context, blocks);
}

TEST_CASE("what ends managed memory, pinned memory and arrays waits for the same", "[waits]") {
  const CurrentContext context;
  const Pages pages(std::aligned_alloc(4096, 4096));
  each_waits(context, [&] { return others(pages.get()); });
}

TEST_CASE("what ends memory waits for no other context's work", "[waits]") {
  const CurrentContext busy;
  const CUstream stream = new_stream();
  const CurrentContext context;
  const Pages pages(std::aligned_alloc(4096, 4096));
  std::vector<Ending> endings = blocks();
  for (Ending &other : others(pages.get())) endings.push_back(std::move(other));
  Gate gate;
  REQUIRE(cuCtxSetCurrent(busy.get()) == CUDA_SUCCESS);
  gate.hold(stream);
  REQUIRE(cuCtxSetCurrent(context.get()) == CUDA_SUCCESS);
  for (const Ending &ending : endings) {
    INFO(ending.name);
    CHECK(ending.call() == CUDA_SUCCESS);
  }
  CHECK_FALSE(gate.is_open());
}

TEST_CASE("a free of another context's block waits for that context's work alone", "[waits][block]") {
  const CurrentContext owner;
  const CUstream of_owner = new_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr first = device_memory(4096), second = device_memory(4096);
  const CurrentContext current;
  const CUstream of_current = new_stream(CU_STREAM_NON_BLOCKING);
  {
    Gate gate;
    gate.hold(of_current);
    CHECK(cuMemFree(first) == CUDA_SUCCESS);
    CHECK_FALSE(gate.is_open());
  }
  Gate gate;
  REQUIRE(cuCtxSetCurrent(owner.get()) == CUDA_SUCCESS);
  gate.hold(of_owner);
  REQUIRE(cuCtxSetCurrent(current.get()) == CUDA_SUCCESS);
  CHECK(waits([second] { return cuMemFree(second); }, current.get(), gate));
}

TEST_CASE("allocations wait for nothing, nor does what ends mappings, handles, pools, streams, events and graphs",
          "[waits]") {
  const CurrentContext context;
  const CUstream idle = new_stream(CU_STREAM_NON_BLOCKING), busy = new_stream();
  CUdeviceptr block = 0;
  void *pinned = nullptr;
  NewGraph graph;
  Exec exec(graph);
  Gate gate;
  gate.hold(busy);
  CHECK(cuMemAlloc(&block, kMiB) == CUDA_SUCCESS);
  CHECK(cuMemAllocManaged(&block, kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(cuMemAllocHost(&pinned, 4096) == CUDA_SUCCESS);
  new_array(shape(64, 64));
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  { const MappedRange range(2); }
  {
    Pool pool;
    CHECK(cuMemFreeAsync(pool.allocate(kMiB, idle), idle) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(idle) == CUDA_SUCCESS);
    CHECK(cuMemFree(pool.allocate(kMiB, idle)) == CUDA_SUCCESS);
    CHECK(cuMemPoolTrimTo(pool.get(), 0) == CUDA_SUCCESS);
    CHECK(cuMemFreeAsync(pool.allocate(kMiB, busy), busy) == CUDA_SUCCESS);
  }
  const CUevent event = new_event();
  CHECK(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(cuStreamDestroy(busy) == CUDA_SUCCESS);
  exec.destroy();
  CHECK(cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
  CHECK_FALSE(gate.is_open());
}

}  // namespace
}  // namespace simcuda::conformance

// Which calls wait for work that is running: in a blocking stream, a non-blocking one, a default stream, or a stream of
// another context? Does an event of a whole context cover all these streams, and does it hold up later work?
#include <cstdlib>
#include <tuple>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr unsigned kBusyMs = 100;

struct Step {
  std::string name;
  std::function<CUresult()> call;
};

// What the steps work on. Each step but the last of its kind leaves what the next one needs.
struct Objects {
  CUdeviceptr block = 0, range = 0, stitched = 0, pooled = 0, managed = 0;
  CUmemGenericAllocationHandle handle = 0, second = 0;
  CUmemoryPool pool = nullptr;
  CUstream idle = nullptr, stream = nullptr;
  CUevent event = nullptr, past = nullptr;
  CUarray array = nullptr;
  CUmodule module = nullptr;
  void *host = nullptr, *registered = nullptr;
  std::size_t free = 0, total = 0;
  unsigned word = 0;
  CUcontext context = nullptr;
};

void add_plain(std::vector<Step> &steps, Objects &o) {
  for (const std::size_t bytes : {4 * kKiB, 512 * kKiB, kMiB, kMiB + 4 * kKiB, 2 * kMiB, 64 * kMiB, kGiB}) {
    steps.push_back({"cuMemAlloc_" + size_name(bytes), [&o, bytes] { return cuMemAlloc(&o.block, bytes); }});
    steps.push_back({"cuMemFree_" + size_name(bytes), [&o] { return cuMemFree(o.block); }});
  }
  steps.push_back({"cuMemFree_of_null", [] { return cuMemFree(0); }});
  steps.push_back(
      {"cuMemAllocManaged", [&o] { return cuMemAllocManaged(&o.managed, 2 * kMiB, CU_MEM_ATTACH_GLOBAL); }});
  steps.push_back({"cuMemFree_of_managed", [&o] { return cuMemFree(o.managed); }});
}

void add_mapped(std::vector<Step> &steps, Objects &o) {
  const auto create = [](CUmemGenericAllocationHandle *handle) {
    const CUmemAllocationProp memory = device_memory();
    return cuMemCreate(handle, kGranule, &memory, 0);
  };
  steps.push_back({"cuMemAddressReserve", [&o] { return cuMemAddressReserve(&o.range, 2 * kGranule, 0, 0, 0); }});
  steps.push_back({"cuMemCreate", [&o, create] { return create(&o.handle); }});
  steps.push_back({"cuMemCreate_second", [&o, create] { return create(&o.second); }});
  steps.push_back({"cuMemMap", [&o] { return cuMemMap(o.range, kGranule, 0, o.handle, 0); }});
  steps.push_back({"cuMemMap_second", [&o] { return cuMemMap(o.range + kGranule, kGranule, 0, o.second, 0); }});
  steps.push_back({"cuMemSetAccess", [&o] { return allow(o.range, 2 * kGranule); }});
  steps.push_back({"cuMemSetAccess_again", [&o] { return allow(o.range, kGranule); }});
  steps.push_back({"cuMemUnmap", [&o] { return cuMemUnmap(o.range, kGranule); }});
  steps.push_back({"cuMemUnmap_second", [&o] { return cuMemUnmap(o.range + kGranule, kGranule); }});
  steps.push_back({"cuMemRelease", [&o] { return cuMemRelease(o.handle); }});
  steps.push_back({"cuMemRelease_second", [&o] { return cuMemRelease(o.second); }});
  steps.push_back({"cuMemAddressFree", [&o] { return cuMemAddressFree(o.range, 2 * kGranule); }});
}

void add_pooled(std::vector<Step> &steps, Objects &o) {
  steps.push_back({"cuMemPoolCreate", [&o] {
                     CUmemPoolProps props = {};
                     props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                     props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
                     return cuMemPoolCreate(&o.pool, &props);
                   }});
  const auto take = [&o] { return cuMemAllocFromPoolAsync(&o.pooled, 64 * kMiB, o.pool, o.idle); };
  steps.push_back({"cuMemAllocFromPoolAsync", take});
  steps.push_back({"cuMemFreeAsync", [&o] { return cuMemFreeAsync(o.pooled, o.idle); }});
  steps.push_back({"cuStreamSynchronize_of_the_idle_stream", [&o] { return cuStreamSynchronize(o.idle); }});
  steps.push_back({"cuMemAllocFromPoolAsync_again", take});
  steps.push_back({"cuMemFree_of_pooled", [&o] { return cuMemFree(o.pooled); }});
  steps.push_back({"cuMemPoolTrimTo", [&o] { return cuMemPoolTrimTo(o.pool, 0); }});
  steps.push_back({"cuMemAllocFromPoolAsync_third", take});
  steps.push_back({"cuMemFreeAsync_third", [&o] { return cuMemFreeAsync(o.pooled, o.idle); }});
  steps.push_back({"cuMemPoolDestroy", [&o] { return cuMemPoolDestroy(o.pool); }});
}

void add_other(std::vector<Step> &steps, Objects &o) {
  steps.push_back({"cuMemAllocHost", [&o] { return cuMemAllocHost(&o.host, 4 * kMiB); }});
  steps.push_back({"cuMemFreeHost", [&o] { return cuMemFreeHost(o.host); }});
  steps.push_back({"cuMemHostRegister", [&o] { return cuMemHostRegister(o.registered, 4 * kMiB, 0); }});
  steps.push_back({"cuMemHostUnregister", [&o] { return cuMemHostUnregister(o.registered); }});
  steps.push_back({"cuArrayCreate", [&o] {
                     const CUDA_ARRAY_DESCRIPTOR shape = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
                     return cuArrayCreate(&o.array, &shape);
                   }});
  steps.push_back({"cuArrayDestroy", [&o] { return cuArrayDestroy(o.array); }});
  steps.push_back({"cuStreamCreate", [&o] { return cuStreamCreate(&o.stream, CU_STREAM_NON_BLOCKING); }});
  steps.push_back({"cuStreamDestroy", [&o] { return cuStreamDestroy(o.stream); }});
  steps.push_back({"cuEventCreate", [&o] { return cuEventCreate(&o.event, CU_EVENT_DISABLE_TIMING); }});
  steps.push_back({"cuCtxRecordEvent", [&o] { return cuCtxRecordEvent(o.context, o.event); }});
  steps.push_back({"cuEventQuery_of_a_past_event", [&o] { return cuEventQuery(o.past); }});
  steps.push_back({"cuEventDestroy", [&o] { return cuEventDestroy(o.event); }});
  steps.push_back({"cuMemGetInfo", [&o] { return cuMemGetInfo(&o.free, &o.total); }});
  steps.push_back({"cuPointerGetAttribute",
                   [&o] { return cuPointerGetAttribute(&o.word, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, o.stitched); }});
  steps.push_back({"cuMemcpyHtoDAsync_in_the_idle_stream",
                   [&o] { return cuMemcpyHtoDAsync(o.stitched, &o.word, sizeof o.word, o.idle); }});
}

// Runs the steps once on the idle device, then each while a kernel runs in `stream` of `busy_context`.
void measure(Test &test, CUstream stream, CUcontext busy_context) {
  Cleanup cleanup;
  Objects o;
  must(cuCtxGetCurrent(&o.context));
  must(cuStreamCreate(&o.idle, CU_STREAM_NON_BLOCKING));
  cleanup.add([&o] { cuStreamDestroy(o.idle); });
  must(cuEventCreate(&o.past, CU_EVENT_DISABLE_TIMING));
  cleanup.add([&o] { cuEventDestroy(o.past); });
  must(cuEventRecord(o.past, o.idle));
  o.registered = std::aligned_alloc(4096, 4 * kMiB);
  cleanup.add([&o] { std::free(o.registered); });
  const Stitched stitched(1);
  o.stitched = stitched.at();
  std::vector<Step> steps;
  for (const auto add : {add_plain, add_mapped, add_pooled, add_other}) add(steps, o);
  must(cuCtxSetCurrent(busy_context));
  const Kernels kernels = load_kernels();
  must(cuCtxSetCurrent(o.context));
  for (const Step &step : steps) test.number(step.name + "_us_idle", microseconds([&] { must(step.call()); }));
  std::string waiting;
  for (const Step &step : steps) {
    must(cuCtxSetCurrent(busy_context));
    const Spin spin(kernels, stream, kBusyMs);
    must(cuCtxSetCurrent(o.context));
    CUresult code = CUDA_SUCCESS;
    test.number(step.name + "_us_busy", microseconds([&] { code = step.call(); }));
    const bool waited = !spin.running();
    if (code != CUDA_SUCCESS) test.code(step.name + "_code", code);
    test.yes(step.name + "_waited", waited);
    if (waited) waiting += (waiting.empty() ? "" : ", ") + step.name;
  }
  test.note("Waited for the running kernel: " + (waiting.empty() ? "none" : waiting) + ".");
}

CUcontext current() {
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context));
  return context;
}

void of_stream(Test &test, unsigned flags) {
  Cleanup cleanup;
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, flags));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  measure(test, stream, current());
}

void blocking(Test &test) {
  of_stream(test, CU_STREAM_DEFAULT);
}
void non_blocking(Test &test) {
  of_stream(test, CU_STREAM_NON_BLOCKING);
}
void legacy(Test &test) {
  measure(test, CU_STREAM_LEGACY, current());
}

void other_context(Test &test) {
  Cleanup cleanup;
  const CUcontext first = current();
  CUcontext second = nullptr;
  must(cuCtxCreate(&second, nullptr, 0, 0));
  cleanup.add([=] {
    cuCtxDestroy(second);
    cuCtxSetCurrent(first);
  });
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  must(cuCtxSetCurrent(first));
  measure(test, stream, second);
}

// An event of a context is recorded while one stream is busy: is it reached before that stream ends, and does work that
// another stream gets afterwards have to wait?
void context_event(Test &test) {
  Cleanup cleanup;
  CUstream streams[3] = {};
  for (CUstream &stream : streams) {
    must(cuStreamCreate(&stream, &stream == streams ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    cleanup.add([stream] { cuStreamDestroy(stream); });
  }
  CUevent event = nullptr, later = nullptr;
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  must(cuEventCreate(&later, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kMiB));
  cleanup.add([=] {
    cuMemFree(block);
    cuEventDestroy(event);
    cuEventDestroy(later);
  });
  const Kernels kernels = load_kernels();
  must(fill(kernels, block, 1, 0, streams[2]));
  must(cuStreamSynchronize(streams[2]));
  using Named = std::pair<const char *, CUstream>;
  for (const auto &[name, stream] : {Named("blocking", streams[0]), Named("non_blocking", streams[1]),
                                     Named("legacy", CU_STREAM_LEGACY), Named("per_thread", CU_STREAM_PER_THREAD)}) {
    Spin spin(kernels, stream, 500);
    must(cuCtxRecordEvent(current(), event));
    must(fill(kernels, block, 1, 0, streams[2]));
    must(cuEventRecord(later, streams[2]));
    const double waited = microseconds([&] {
      while (spin.running() && cuEventQuery(later) == CUDA_ERROR_NOT_READY) continue;
    });
    const std::string suffix = std::string("_") + name;
    test.yes("later_work_of_another_stream_runs_meanwhile" + suffix, spin.running());
    test.number("later_work_ended_after_us" + suffix, waited);
    test.yes("covers" + suffix, cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    spin.stop();
    test.number("reached_after_us" + suffix, microseconds([&] { must(cuEventSynchronize(event)); }));
  }
  test.note("cuCtxRecordEvent while a kernel runs in a stream of each kind.");
}

}  // namespace

int main() {
  return question::run({{"context_event", context_event},
                        {"blocking_stream", blocking},
                        {"non_blocking_stream", non_blocking},
                        {"legacy_stream", legacy},
                        {"other_context", other_context}});
}

// What may a thread call while a stream is captured: in the three capture modes, by the capturing thread and by another
// one, with and without RELAXED as the thread's own mode? And does the capture survive the call?
#include <thread>

#include "tests/gpu/questions/kernels.h"
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

// What exists before the capture begins.
struct Scene {
  Scene() {
    must(cuCtxGetCurrent(&context));
    must(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&past, CU_EVENT_DISABLE_TIMING));
    must(cuEventRecord(past, other));
    must(cuStreamSynchronize(other));
    must(cuMemAlloc(&target, kMiB));
    must(cuMemAlloc(&block, kMiB));
    must(cuMemAllocAsync(&pooled, kMiB, other));
    must(cuStreamSynchronize(other));
    mapped.map(0, handle);
    must(allow(mapped.at(), mapped.bytes()));
    must(cuMemAllocHost(&pinned, kMiB));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    const CUmemAllocationProp memory = device_memory();
    must(cuMemCreate(&spare, kGranule, &memory, 0));
  }
  ~Scene() {
    cuStreamDestroy(captured);
    for (const CUdeviceptr one : {taken, block, target}) {
      if (one != 0) cuMemFree(one);
    }
    if (pooled != 0) cuMemFreeAsync(pooled, other);
    for (const CUmemGenericAllocationHandle one : {created, spare}) {
      if (one != 0) cuMemRelease(one);
    }
    if (pinned != nullptr) cuMemFreeHost(pinned);
    if (taken_pinned != nullptr) cuMemFreeHost(taken_pinned);
    cuStreamDestroy(other);
    cuEventDestroy(event);
    cuEventDestroy(past);
  }

  CUcontext context = nullptr;
  CUstream captured = nullptr, other = nullptr;
  CUevent event = nullptr, past = nullptr;
  CUdeviceptr target = 0, block = 0, pooled = 0, taken = 0;
  CUmemGenericAllocationHandle created = 0, spare = 0;
  Handles handle{kGranule, 1}, second{kGranule, 1};
  Range mapped{kGranule}, empty{kGranule};
  void *pinned = nullptr, *taken_pinned = nullptr;
  CUmemoryPool pool = nullptr;
};

template <class Object>
CUresult emptied_if_done(CUresult code, Object *object) {
  if (code == CUDA_SUCCESS) *object = {};
  return code;
}

struct Call {
  const char *name;
  CUresult (*act)(Scene &);
};

const Call kCalls[] = {
    {"cuMemAlloc_4KiB", [](Scene &s) { return cuMemAlloc(&s.taken, 4 * kKiB); }},
    {"cuMemAlloc_64MiB", [](Scene &s) { return cuMemAlloc(&s.taken, 64 * kMiB); }},
    {"cuMemFree", [](Scene &s) { return emptied_if_done(cuMemFree(s.block), &s.block); }},
    {"cuMemFree_of_null", [](Scene &) { return cuMemFree(0); }},
    {"cuMemAddressReserve",
     [](Scene &) {
       CUdeviceptr address = 0;
       const CUresult code = cuMemAddressReserve(&address, kGranule, 0, 0, 0);
       if (code == CUDA_SUCCESS) cuMemAddressFree(address, kGranule);
       return code;
     }},
    {"cuMemCreate",
     [](Scene &s) {
       const CUmemAllocationProp memory = device_memory();
       return cuMemCreate(&s.created, kGranule, &memory, 0);
     }},
    {"cuMemMap",
     [](Scene &s) {
       const CUresult code = cuMemMap(s.empty.at(), kGranule, 0, s.second[0], 0);
       if (code == CUDA_SUCCESS) cuMemUnmap(s.empty.at(), kGranule);
       return code;
     }},
    {"cuMemSetAccess", [](Scene &s) { return allow(s.mapped.at(), kGranule); }},
    {"cuMemUnmap", [](Scene &s) { return cuMemUnmap(s.mapped.at(), kGranule); }},
    {"cuMemRelease", [](Scene &s) { return emptied_if_done(cuMemRelease(s.spare), &s.spare); }},
    {"cuEventQuery_of_a_past_event", [](Scene &s) { return cuEventQuery(s.past); }},
    {"cuEventRecord_in_another_stream", [](Scene &s) { return cuEventRecord(s.event, s.other); }},
    {"cuCtxRecordEvent", [](Scene &s) { return cuCtxRecordEvent(s.context, s.event); }},
    {"cuCtxSynchronize", [](Scene &) { return cuCtxSynchronize(); }},
    {"cuStreamQuery_of_another_stream", [](Scene &s) { return cuStreamQuery(s.other); }},
    {"cuStreamSynchronize_of_another_stream", [](Scene &s) { return cuStreamSynchronize(s.other); }},
    {"cuMemAllocAsync_in_another_stream", [](Scene &s) { return cuMemAllocAsync(&s.taken, kMiB, s.other); }},
    {"cuMemFreeAsync_in_another_stream",
     [](Scene &s) { return emptied_if_done(cuMemFreeAsync(s.pooled, s.other), &s.pooled); }},
    {"cuMemAllocAsync_in_the_captured_stream",
     [](Scene &s) {
       CUdeviceptr node = 0;
       const CUresult code = cuMemAllocAsync(&node, kMiB, s.captured);
       if (code == CUDA_SUCCESS) cuMemFreeAsync(node, s.captured);
       return code;
     }},
    {"cuMemFreeAsync_of_a_plain_block_in_the_captured_stream",
     [](Scene &s) { return cuMemFreeAsync(s.block, s.captured); }},
    {"cuMemAllocHost", [](Scene &s) { return cuMemAllocHost(&s.taken_pinned, kMiB); }},
    {"cuMemFreeHost", [](Scene &s) { return emptied_if_done(cuMemFreeHost(s.pinned), &s.pinned); }},
    {"cuMemcpyHtoD", [](Scene &s) { return cuMemcpyHtoD(s.target, &s, 64); }},
    {"cuMemsetD8_of_the_legacy_stream", [](Scene &s) { return cuMemsetD8(s.target, 0, 64); }},
    {"cuMemGetInfo",
     [](Scene &) {
       std::size_t free = 0, total = 0;
       return cuMemGetInfo(&free, &total);
     }},
    {"cuPointerGetAttribute",
     [](Scene &s) {
       unsigned type = 0;
       return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s.block);
     }},
    {"cuDeviceGetMemPool",
     [](Scene &) {
       CUmemoryPool pool = nullptr;
       return cuDeviceGetMemPool(&pool, 0);
     }},
    {"cuMemPoolGetAttribute",
     [](Scene &s) {
       cuuint64_t value = 0;
       return cuMemPoolGetAttribute(s.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
     }},
    {"cuMemPoolSetAttribute",
     [](Scene &s) {
       cuuint64_t value = 0;
       return cuMemPoolSetAttribute(s.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
     }},
    {"cuMemPoolTrimTo", [](Scene &s) { return cuMemPoolTrimTo(s.pool, 0); }},
    {"cuMemPoolCreate",
     [](Scene &) {
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       const CUresult code = cuMemPoolCreate(&pool, &properties);
       if (code == CUDA_SUCCESS) cuMemPoolDestroy(pool);
       return code;
     }},
    {"cuStreamCreate",
     [](Scene &) {
       CUstream stream = nullptr;
       const CUresult code = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
       if (code == CUDA_SUCCESS) cuStreamDestroy(stream);
       return code;
     }},
    {"cuEventCreate",
     [](Scene &) {
       CUevent made = nullptr;
       const CUresult code = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
       if (code == CUDA_SUCCESS) cuEventDestroy(made);
       return code;
     }},
    {"cuMemGetAddressRange",
     [](Scene &s) {
       CUdeviceptr base = 0;
       std::size_t bytes = 0;
       return cuMemGetAddressRange(&base, &bytes, s.block);
     }},
    {"cuMemAllocManaged", [](Scene &s) { return cuMemAllocManaged(&s.taken, kMiB, CU_MEM_ATTACH_GLOBAL); }},
    {"cuGraphInstantiate",
     [](Scene &) {
       CUgraph graph = nullptr;
       CUgraphExec exec = nullptr;
       must(cuGraphCreate(&graph, 0));
       const CUresult code = cuGraphInstantiate(&exec, graph, 0);
       if (code == CUDA_SUCCESS) cuGraphExecDestroy(exec);
       cuGraphDestroy(graph);
       return code;
     }},
    {"cuModuleLoadData",
     [](Scene &) {
       CUmodule module = nullptr;
       const CUresult code = cuModuleLoadData(&module, kKernels);
       if (code == CUDA_SUCCESS) cuModuleUnload(module);
       return code;
     }},
    {"cuIpcGetMemHandle",
     [](Scene &s) {
       CUipcMemHandle ipc{};
       return cuIpcGetMemHandle(&ipc, s.block);
     }},
    {"cuStreamWaitEvent_in_another_stream", [](Scene &s) { return cuStreamWaitEvent(s.other, s.past, 0); }},
    {"cuMemcpyDtoH",
     [](Scene &s) {
       unsigned char to[64];
       return cuMemcpyDtoH(to, s.block, 64);
     }},
};

CUresult call(const Call &call, Scene &scene, bool relaxed) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (relaxed) must(cuThreadExchangeStreamCaptureMode(&mode));
  const CUresult code = call.act(scene);
  if (relaxed) cuThreadExchangeStreamCaptureMode(&mode);
  return code;
}

CUresult call_in_another_thread(const Call &one, Scene &scene, bool relaxed) {
  CUresult code = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    cuCtxSetCurrent(scene.context);
    try {
      code = call(one, scene, relaxed);
    } catch (const Stop &) {
      code = CUDA_ERROR_UNKNOWN;
    }
  }).join();
  return code;
}

// Adds the calls that were refused and those that ended the capture.
void capture(Test &test, CUstreamCaptureMode mode, bool other_thread, bool relaxed) {
  std::string refused, invalidating;
  for (const Call &one : kCalls) {
    Scene scene;
    must(cuStreamBeginCapture(scene.captured, mode));
    must(cuMemsetD8Async(scene.target, 1, 64, scene.captured));
    const CUresult code = other_thread ? call_in_another_thread(one, scene, relaxed) : call(one, scene, relaxed);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuStreamIsCapturing(scene.captured, &status);
    CUgraph graph = nullptr;
    const CUresult ended = cuStreamEndCapture(scene.captured, &graph);
    if (graph != nullptr) cuGraphDestroy(graph);
    const std::string name = one.name;
    test.code(name + "_code", code);
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) test.number(name + "_capture_status", status);
    if (ended != CUDA_SUCCESS) test.code(name + "_end_capture_code", ended);
    if (code != CUDA_SUCCESS) refused += " " + name;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || ended != CUDA_SUCCESS) invalidating += " " + name;
  }
  test.note("Refused:" + (refused.empty() ? " none" : refused) +
            ". The capture was lost by:" + (invalidating.empty() ? " none" : invalidating) + ".");
}

template <CUstreamCaptureMode kMode, bool kOtherThread, bool kRelaxed>
void captured(Test &test) {
  capture(test, kMode, kOtherThread, kRelaxed);
}

// Does an event that a context records while one of its streams captures, relaxed, still follow the context's other
// work?
void event_during_capture(Test &test) {
  const Kernels kernels = load_kernels();
  const Scene scene;
  must(cuStreamBeginCapture(scene.captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  Cleanup cleanup;
  cleanup.add([&] {
    CUgraph graph = nullptr;
    test.code("end_capture_code", cuStreamEndCapture(scene.captured, &graph));
    if (graph != nullptr) cuGraphDestroy(graph);
  });
  Spin spin(kernels, scene.other, 200);
  const CUresult code = cuCtxRecordEvent(scene.context, scene.event);
  test.code("record_code", code);
  test.code("query_while_busy_code", cuEventQuery(scene.event));
  spin.stop();
  test.code("synchronise_code", cuEventSynchronize(scene.event));
  test.note("cuCtxRecordEvent while one stream captures (relaxed) and another one runs a kernel.");
}

}  // namespace

int main() {
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL, kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                 kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  return question::run({{"global.same_thread", captured<kGlobal, false, false>},
                        {"global.same_thread.exchanged", captured<kGlobal, false, true>},
                        {"global.other_thread", captured<kGlobal, true, false>},
                        {"global.other_thread.exchanged", captured<kGlobal, true, true>},
                        {"thread_local.same_thread", captured<kLocal, false, false>},
                        {"thread_local.same_thread.exchanged", captured<kLocal, false, true>},
                        {"thread_local.other_thread", captured<kLocal, true, false>},
                        {"thread_local.other_thread.exchanged", captured<kLocal, true, true>},
                        {"relaxed.same_thread", captured<kRelaxed, false, false>},
                        {"relaxed.same_thread.exchanged", captured<kRelaxed, false, true>},
                        {"relaxed.other_thread", captured<kRelaxed, true, false>},
                        {"relaxed.other_thread.exchanged", captured<kRelaxed, true, true>},
                        {"event_during_capture", event_during_capture}});
}

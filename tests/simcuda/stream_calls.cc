// The stream calls of the public API, and host functions in stream order. Layer: driver.h. Threads: any.
#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

constexpr int kHighestPriority = -5;

template <class Body>
CUresult with_stream(CUstream handle, Body body) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, handle, &stream); error != CUDA_SUCCESS) return error;
  return body(lock, stream);
}

template <class Value, class Read>
CUresult report(CUstream handle, Value *value, Read read) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(handle, [&](Lock &, const std::shared_ptr<Stream> &stream) {
    *value = read(*stream);
    return CUDA_SUCCESS;
  });
}

}  // namespace

void in_turn(const std::function<void()> &host_function) {
  static std::mutex mutex;
  static std::condition_variable &changed = *new std::condition_variable;  // a worker may outlive main
  static std::uint64_t arrived = 0, served = 0;
  std::unique_lock<std::mutex> lock(mutex);
  const std::uint64_t number = arrived++;
  changed.wait(lock, [&] { return served == number; });
  lock.unlock();
  host_function();
  lock.lock();
  ++served;
  changed.notify_all();
}

CUstream make_stream(Context &context, Stream::Kind kind, int priority) {
  auto stream = new_stream(context, kind, std::clamp(priority, kHighestPriority, 0));
  const auto handle = reinterpret_cast<CUstream>(stream.get());
  driver().streams.emplace(handle, std::move(stream));
  return handle;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags) {
  return simcuda::cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
  if (phStream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto kind = flags == CU_STREAM_NON_BLOCKING ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
  *phStream = make_stream(*context, kind, priority);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream hStream) {
  return simcuda::cuStreamDestroy_v2(hStream);
}

// Queued work still runs. A capture that began here is dropped: it could no longer be ended.
CUresult cuStreamDestroy_v2(CUstream hStream) {
  const Lock lock(driver().mutex);
  const auto found = driver().streams.find(hStream);
  if (found == driver().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (!found->second->context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  forget_capture_of(*found->second);
  found->second->destroyed = true;
  driver().streams.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream hStream) {
  return with_stream(hStream, [](Lock &, const std::shared_ptr<Stream> &stream) {
    if (const CUresult error = may_ask(*stream); error != CUDA_SUCCESS) return error;
    return idle(*stream->context, stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return with_stream(hStream, [](Lock &lock, const std::shared_ptr<Stream> &stream) {
    if (const CUresult error = may_ask(*stream); error != CUDA_SUCCESS) return error;
    if (!idle(*stream->context, stream)) wait(lock, submit(lock, stream, Pace::kInstant, [] {}));
    after_waiting(lock);
    return stream->context->health();
  });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
  return report(hStream, flags, [](const Stream &stream) {
    return stream.kind == Stream::Kind::kNonBlocking ? unsigned{CU_STREAM_NON_BLOCKING} : unsigned{CU_STREAM_DEFAULT};
  });
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority) {
  return report(hStream, priority, [](const Stream &stream) { return stream.priority; });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
  return report(hStream, pctx, [](const Stream &stream) { return handle_of(stream.context); });
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device) {
  return report(hStream, device, [](const Stream &stream) { return ordinal_of(*stream.context->device); });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
  return report(hStream, streamId, [](const Stream &stream) { return stream.id; });
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  return run(lock, hStream, Form::kAsynchronous, Until::kQueued,
             {CU_GRAPH_NODE_TYPE_HOST, [fn, userData] { in_turn([=] { fn(userData); }); }});
}

// How the caller's thread waits is the program's affair.
CUresult cuLaunchHostFunc_v2(CUstream hStream, CUhostFn fn, void *userData, unsigned int) {
  return simcuda::cuLaunchHostFunc(hStream, fn, userData);
}

// Not capturable, according to cudaStreamAddCallback's manual.
CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(hStream, [=](Lock &lock, const std::shared_ptr<Stream> &stream) {
    if (stream->capture != nullptr) return refuse(*stream);
    return run(lock, stream, Form::kAsynchronous, Until::kQueued,
               {CU_GRAPH_NODE_TYPE_HOST, [=] { in_turn([=] { callback(hStream, CUDA_SUCCESS, userData); }); }});
  });
}

}  // namespace simcuda

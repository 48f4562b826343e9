// Green contexts: separate streams on a device's primary context. Each keeps the primary context alive, which owns the
// memory, events and code created while the green one is current. The CUcontext made from it is the same handle.
// Layer: context_event.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/context_event.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/green_resource.h"

namespace simcuda {
namespace {

// H100, H200, driver 580.159: the two handles are equal.
CUgreenCtx green_handle_of(const Context &context) {
  return reinterpret_cast<CUgreenCtx>(const_cast<Context *>(&context));
}

template <class Body>
CUresult with_green(CUgreenCtx handle, Body body) {
  Lock lock(driver().mutex);
  const auto found = driver().green_contexts.find(handle);
  if (found == driver().green_contexts.end()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!found->second->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return body(lock, *found->second);
}

template <class Body>
CUresult with_green(CUgreenCtx handle, CUevent hEvent, Body body) {
  return with_green(handle, [&](Lock &lock, Context &context) {
    std::shared_ptr<Event> event;
    if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
    return body(lock, context, *event);
  });
}

CUgreenCtx green_of(const Stream &stream) {
  return stream.context->green() ? green_handle_of(*stream.context) : nullptr;
}

}  // namespace

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  Device *device = nullptr;
  if (phCtx == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  Lock lock(driver().mutex);
  const ResourceDescriptor *request = find_descriptor(desc);
  if (request == nullptr || request->device != dev) return CUDA_ERROR_INVALID_VALUE;
  Context &primary = *device->primary;
  if (!primary.alive) {
    if (const CUresult error = bring_up(lock, primary); error != CUDA_SUCCESS) return error;
  }
  auto made = std::make_unique<Context>();
  made->device = device;
  made->root = &primary;
  made->flags = primary.flags;
  made->id = driver().next_id++;
  made->multiprocessors = request->multiprocessors;
  made->legacy = new_stream(*made, Stream::Kind::kLegacy, 0);
  std::copy(std::begin(primary.limits), std::end(primary.limits), made->limits);
  made->alive = true;
  ++device->primary_retained;
  *phCtx = green_handle_of(*made);
  driver().green_contexts.emplace(*phCtx, made.get());
  driver().contexts.emplace(made.get(), std::move(made));
  return CUDA_SUCCESS;
}

// Its streams remain, and return CONTEXT_IS_DESTROYED.
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return with_green(hCtx, [](Lock &lock, Context &context) {
    tear_down_green(lock, context);
    Device &device = *context.device;
    if (--device.primary_retained == 0 && device.primary->alive) tear_down(lock, *device.primary);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId) {
  if (greenCtxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_green(greenCtx, [&](Lock &, Context &context) {
    *greenCtxId = context.id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
  if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_green(hCtx, [&](Lock &, Context &context) {
    *pContext = handle_of(&context);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  if (phStream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  return with_green(greenCtx, [&](Lock &, Context &context) {
    *phStream = make_stream(context, Stream::Kind::kNonBlocking, priority);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return with_green(hCtx, hEvent, record_event);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return with_green(hCtx, hEvent, await_event);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type) {
  return with_green(hCtx, [&](Lock &, Context &context) {
    return tell_resource(ordinal_of(*context.device), context.multiprocessors, type, resource);
  });
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx) {
  if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  *phCtx = green_of(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
  if (pCtx == nullptr || pGreenCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  *pCtx = handle_of(stream->context->root);
  *pGreenCtx = green_of(*stream);
  return CUDA_SUCCESS;
}

}  // namespace simcuda

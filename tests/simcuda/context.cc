#include "tests/simcuda/context.h"

#include <algorithm>

#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/graph_memory.h"

namespace simcuda {
namespace {

constexpr unsigned kDeepest = 32;

// A plain array: thread exit needs no cleanup, so no destructor runs.
struct CurrentStack {
  Context *contexts[kDeepest];
  unsigned depth;
};
thread_local CurrentStack stack{};

void set_defaults(Context &context) {
  for (int limit = 0; limit < CU_LIMIT_MAX; ++limit) {
    context.limits[limit] = default_limit(static_cast<CUlimit>(limit));
  }
  context.cache = CU_FUNC_CACHE_PREFER_NONE;
  context.shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
}

bool is_last(const Context &context) {
  const auto stays = [&](const Context &other) {
    return &other != &context && other.device == context.device && (other.alive || other.closing);
  };
  return !stays(*context.device->primary) && std::none_of(driver().contexts.begin(), driver().contexts.end(),
                                                          [&](const auto &entry) { return stays(*entry.second); });
}

// A driver variant without context functions replaces this one.
CUresult imply_context(Lock &lock) {
  Device &device = driver().devices[0];
  if (!device.primary->alive) {
    if (const CUresult error = bring_up(lock, *device.primary); error != CUDA_SUCCESS) return error;
    ++device.primary_retained;
  }
  return push_current(device.primary.get());
}

}  // namespace

CUresult current(Lock &lock, Context **context) {
  if (kImpliedContext && stack.depth == 0) {
    if (const CUresult error = imply_context(lock); error != CUDA_SUCCESS) return error;
  }
  Context *const top = current_or_null();
  if (top == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!top->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *context = top;
  return top->health();
}

Context *current_or_null() {
  return stack.depth == 0 ? nullptr : stack.contexts[stack.depth - 1];
}

Context *find_context(CUcontext handle) {
  for (const Device &device : driver().devices) {
    if (handle_of(device.primary.get()) == handle) return device.primary.get();
  }
  const auto found = driver().contexts.find(handle);
  return found == driver().contexts.end() ? nullptr : found->second.get();
}

CUresult push_current(Context *context) {
  if (stack.depth == kDeepest) return CUDA_ERROR_INVALID_VALUE;
  stack.contexts[stack.depth++] = context;
  return CUDA_SUCCESS;
}

Context *pop_current() {
  return stack.depth == 0 ? nullptr : stack.contexts[--stack.depth];
}

std::size_t default_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return 1 << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8 << 20;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

CUresult resize_limit(Context &context, CUlimit limit, std::uint64_t bytes) {
  std::uint64_t &has = context.limit_bytes[limit];
  Machine &machine = *driver().machine;
  if (bytes > has && !machine.reserve(context.device->physical, bytes - has)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes < has) machine.release(context.device->physical, has - bytes);
  has = bytes;
  return CUDA_SUCCESS;
}

bool has_addresses(Device &device) {
  if (device.space == nullptr) {
    device.space = AddressSpace::create(device.bytes, !driver().settings->machine.empty());
  }
  return device.space != nullptr;
}

CUresult bring_up(Lock &lock, Context &context) {
  Driver &state = driver();
  state.progress.wait(lock, [&] { return !context.closing; });
  if (context.alive) return CUDA_SUCCESS;  // another thread was faster
  Device &device = *context.device;
  if (!has_addresses(device)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!state.machine->reserve(device.physical, state.settings->context_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  set_defaults(context);
  context.id = state.next_id++;
  context.fault = CUDA_SUCCESS;
  context.legacy = new_stream(context, Stream::Kind::kLegacy, 0);
  context.alive = true;
  return CUDA_SUCCESS;
}

void tear_down_green(Lock &lock, Context &context) {
  context.alive = false;  // no new work is accepted from here on
  for (const auto &stream : context.streams) forget_capture_of(*stream);
  drain(lock, context);
  context.awaited.clear();
}

void tear_down(Lock &lock, Context &context) {
  Driver &state = driver();
  context.alive = false;  // no new work is accepted from here on
  context.closing = true;
  for (Context *member : family(context)) {
    if (member == &context || !member->alive) continue;
    tear_down_green(lock, *member);
    --context.device->primary_retained;  // the green context's reference to the primary context
  }
  for (const auto &stream : context.streams) forget_capture_of(*stream);
  drain(lock, context);
  release_memory_of(context);
  if (is_last(context)) end_graph_memory(*context.device);
  forget_events_of(context);
  forget_code_of(context);
  std::erase_if(state.streams, [&](const auto &entry) { return entry.second->context == &context; });
  context.streams.clear();
  context.per_thread.clear();
  context.legacy.reset();
  context.markers.reset();
  context.peers.clear();
  context.awaited.clear();
  for (int limit = 0; limit < CU_LIMIT_MAX; ++limit) resize_limit(context, static_cast<CUlimit>(limit), 0);
  state.machine->release(context.device->physical, state.settings->context_bytes);
  context.closing = false;
  state.progress.notify_all();
}

}  // namespace simcuda

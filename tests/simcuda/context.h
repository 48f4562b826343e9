// All contexts, and each thread's current context. Layer: driver.h, stream.h. Threads: under Driver::mutex, except a
// thread's own stack. Owns: contexts; none is ever freed, so that a stale handle is recognised.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct Device;

// An ordinary context, a device's primary context, or a green context. A green context is the primary context with
// separate streams; its memory, events and code belong to the primary context.
struct Context {
  Device *device = nullptr;
  Context *root = this;  // for a green context, its primary context
  bool primary = false;
  bool alive = false;  // a primary context is destroyed and recreated under the same handle
  bool closing = false;
  CUresult fault = CUDA_SUCCESS;  // for a root, the error of its work, which every later call in the context returns
  unsigned flags = 0;
  unsigned api_version = 3020;
  unsigned attached = 1;
  std::uint64_t id = 0;
  std::size_t limits[CU_LIMIT_MAX] = {};
  std::uint64_t limit_bytes[CU_LIMIT_MAX] = {};  // the device memory that each limit has taken
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::set<Context *> peers;
  unsigned multiprocessors = 0;  // of a green context
  std::vector<Mark> awaited;     // marks that all its work must wait for (cuCtxWaitEvent)
  std::shared_ptr<Stream> legacy;
  std::shared_ptr<Stream> markers;  // times events of the whole context; created at the first such event
  std::map<std::uint64_t, std::shared_ptr<Stream>> per_thread;  // keyed by the thread's number
  std::vector<std::shared_ptr<Stream>> streams;                 // includes destroyed streams until they are idle

  Context() = default;
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  bool green() const { return root != this; }
  CUresult health() const { return root->fault; }
};

inline CUcontext handle_of(Context *context) {
  return reinterpret_cast<CUcontext>(context);
}

// The context in which calls of this thread work. Returns INVALID_CONTEXT if there is none, CONTEXT_IS_DESTROYED if it
// was destroyed, and its fault if it has one.
CUresult current(Lock &lock, Context **context);
// The same without the check that the context is alive; null if there is none.
Context *current_or_null();
// Returns null if the handle never named a context.
Context *find_context(CUcontext handle);

// The thread's stack. push: INVALID_VALUE when it is full (32 deep). pop: null when it is empty.
CUresult push_current(Context *context);
Context *pop_current();

// Makes a limit take this many bytes of the device and give back any excess. OUT_OF_MEMORY: nothing changed.
CUresult resize_limit(Context &context, CUlimit limit, std::uint64_t bytes);
// The limit's value when the context was created; the memory for it is part of the context's own.
std::size_t default_limit(CUlimit limit);
// Allocates the context's memory and streams. OUT_OF_MEMORY: nothing changed.
CUresult bring_up(Lock &lock, Context &context);
// Waits for the context's work, then frees all its resources. A primary context's green contexts are destroyed too.
void tear_down(Lock &lock, Context &context);
// The same for a green context, which owns only streams; their handles then return CONTEXT_IS_DESTROYED.
void tear_down_green(Lock &lock, Context &context);

}  // namespace simcuda

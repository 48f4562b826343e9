// Contexts, and the one that is current to a thread. Layer: driver.h, stream.h. Threads: under Driver::mutex, but for
// a thread's own stack. Owns: nothing is ever freed, so that a stale handle is recognised for what it is.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct Device;

// An ordinary context, a device's primary one, or a green one: the primary context with streams of its own, to which
// its memory, events and code belong.
struct Context {
  Device *device = nullptr;
  Context *root = this;  // the primary context above a green one
  bool primary = false;
  bool alive = false;  // a primary context comes and goes under the same handle
  bool closing = false;
  unsigned flags = 0;
  unsigned api_version = 3020;
  unsigned attached = 1;
  std::uint64_t id = 0;
  std::size_t limits[CU_LIMIT_MAX] = {};
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::set<Context *> peers;
  unsigned multiprocessors = 0;  // of a green one
  std::vector<Mark> awaited;     // what all its work comes behind (cuCtxWaitEvent)
  std::shared_ptr<Stream> legacy;
  std::shared_ptr<Stream> markers;  // tells when events of the whole context have passed; from the first one on
  std::map<std::uint64_t, std::shared_ptr<Stream>> per_thread;  // by a number of the thread
  std::vector<std::shared_ptr<Stream>> streams;                 // all, destroyed ones until they are idle

  Context() = default;
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  bool green() const { return root != this; }
};

inline CUcontext handle_of(Context *context) {
  return reinterpret_cast<CUcontext>(context);
}

// The context that calls on this thread work in. INVALID_CONTEXT: none; CONTEXT_IS_DESTROYED: it has gone.
CUresult current(Lock &lock, Context **context);
// The same without judging whether it still lives; null: none.
Context *current_or_null();
// Null for a handle that no context ever had.
Context *find_context(CUcontext handle);

// The thread's stack. push: INVALID_VALUE when it is full (32 deep). pop: null when it is empty.
CUresult push_current(Context *context);
Context *pop_current();

// Gives the context its memory and streams. OUT_OF_MEMORY: nothing changed.
CUresult bring_up(Lock &lock, Context &context);
// Waits for its work, then frees all that it has; takes a primary context's green ones along.
void tear_down(Lock &lock, Context &context);
// The same for a green one, which has nothing but its streams; those keep answering that it has gone.
void tear_down_green(Lock &lock, Context &context);

}  // namespace simcuda

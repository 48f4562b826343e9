// The contexts that this process has seen, and which of them are gone.
// Layer: policy. Threads: any; driver calls outside the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "driver/functions.h"
#include "lock.h"
#include "policy/devices.h"

namespace ration::policy {

// One life of a context; a handle that the driver uses again gets a new one.
struct Context {
  CUcontext handle = nullptr;
  unsigned number = 0;  // order of appearance, from 1; 0 where the driver does not say what is current
  int device = 0;
  std::atomic<const char *> ended_by{nullptr};  // the call that destroyed it
  std::atomic<std::uint64_t> own_bytes{0};      // charged for the context itself (charge_context)
};
using ContextRef = std::shared_ptr<Context>;

class Contexts {
 public:
  explicit Contexts(Devices &devices) : devices_(devices) {}

  // What the calling thread works on. Where nothing is current, `error` is what a call that needs a context is
  // answered, and should the driver serve it all the same, it is the first device's: the strictest reading.
  struct Current {
    ContextRef context;
    int device = 0;
    CUresult error = CUDA_SUCCESS;
  };
  Current current();

  ContextRef find(CUcontext handle);
  // A context that is current, was just created (a new life, even while the one that had the handle before is still
  // being forgotten), or was retained as `device`'s primary one.
  ContextRef note(CUcontext handle, int device);
  ContextRef note_created(CUcontext handle, int device);
  ContextRef note_primary(CUcontext handle, int device);
  ContextRef primary_of(int device);
  // The driver says that `api` destroyed it: no block may be entered for it any more.
  void forget(const ContextRef &context, const char *api);

  // References that the program holds: cuCtxAttach/Detach on a context, retain/release on a device's primary one.
  int add_reference(CUcontext handle, int change);
  int add_primary_reference(int device, int change);

 private:
  ContextRef note_locked(CUcontext handle, int device) REQUIRES(mutex_);

  Devices &devices_;
  RankedMutex mutex_{Rank::kContexts};
  std::unordered_map<CUcontext, ContextRef> contexts_ GUARDED_BY(mutex_);
  std::unordered_map<CUcontext, int> references_ GUARDED_BY(mutex_);
  std::unordered_map<int, CUcontext> primaries_ GUARDED_BY(mutex_);
  std::unordered_map<int, int> primary_references_ GUARDED_BY(mutex_);
  unsigned last_number_ GUARDED_BY(mutex_) = 0;
  const ContextRef unknown_ = std::make_shared<Context>();
};

}  // namespace ration::policy

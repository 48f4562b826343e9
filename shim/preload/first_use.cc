// At the first call, loads the core and binds the entries; closes the entries if the core cannot be loaded.
// Layer: preload. Called from: ration_first_use in trampolines_*.S.
// Threads: no lock is held across dlopen or dlsym: a thread inside a library's constructor holds the loader's lock and
// may arrive here. Racing threads load the same core (the loader serialises them) and store equal slots.
// Design: design/first-use.md#no-lock-across-the-loader
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

#include "base/clock.h"
#include "base/fork_exclusion.h"
#include "base/quiet_write.h"
#include "core_file.h"
#include "link_map.h"
#include "own_stack.h"
#include "preload.h"

namespace ration::preload {
namespace {

// kClosedNow: the core could not be loaded, but may be later, when descriptors or memory are free again or the process
// can see its root folder again.
enum class State : int { kUnknown = 0, kBound, kInert, kClosed, kClosedNow };
int state;  // a State, never kClosedNow

// Each attempt reads the file system. After the first kTriesAtOnce, a call that comes too soon after a failure makes no
// attempt.
// Design: design/first-use.md#shortages
constexpr int kTriesAtOnce = 100;
constexpr uint64_t kBetweenTriesNs = 10'000'000;
int failed_tries;
uint64_t failed_at_ns;

bool has_just_failed() {
  return __atomic_load_n(&failed_tries, __ATOMIC_RELAXED) >= kTriesAtOnce &&
         now_ns() - __atomic_load_n(&failed_at_ns, __ATOMIC_RELAXED) < kBetweenTriesNs;
}

__attribute__((tls_model("initial-exec"))) __thread RationThread thread_state;

RationThread *this_thread() {
  return &thread_state;
}

int is_in_driver(const void *code) {
  void *driver = found_driver();
  if (driver == nullptr) {
    return 0;
  }
  hook_at(driver, code, nullptr);
  return in_driver(reinterpret_cast<uintptr_t>(code)) ? 1 : 0;
}

const RationCoreAbi *loaded_core;  // set once the core is loaded

// Loads the core and starts it. On failure returns nullptr: `why` and `path` describe the error, and `may_pass` says
// whether it may go away. `path` has room for kPathMax bytes.
const RationCoreAbi *load_core(char *path, const char *&why, bool &may_pass) {
  path[0] = '\0';
  if (const RationCoreAbi *core = started_core()) {
    return core;
  }
  if (!core_path(path)) {
    why = "cannot tell where libration.so was loaded from, so its core cannot be found";
    return nullptr;
  }
  void *handle = is_whole_file(path) ? real().dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    why = "cannot load its core ";
    may_pass = true;
    return nullptr;
  }
  static const RationPreloadAbi preload_abi = {RATION_VERSION, real().dlopen, real().dlsym,  &any_driver,
                                               &this_thread,   &coverage,     entries,       kHookCount,
                                               &loaded_nvml,   &is_in_driver, &on_own_stack, &limit_changes};
  const auto start = reinterpret_cast<ration_core_start_t>(real().dlsym(handle, "ration_core_start"));
  const RationCoreAbi *core = start != nullptr ? start(&preload_abi) : nullptr;
  if (core == nullptr) {
    why = "cannot start its core ";
  } else if (core->hook_count != kHookCount || !same(core->build, RATION_VERSION) ||
             core->nvml_hook_count != kNvmlHookCount) {
    why = "is of another build than its core ";
    core = nullptr;
  }
  if (core != nullptr) {
    __atomic_store_n(&loaded_core, core, __ATOMIC_RELEASE);
  }
  return core;
}

// Blocks signals while a thread loads and starts the core. A signal handler could abandon that halfway for good, by
// siglongjmp, or call the driver through slots that lead nowhere yet. Signals that the thread itself causes are not
// blocked.
// Design: design/first-use.md#signals-during-first-use
class Starting {
 public:
  Starting() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&all, own);
    }
    sigprocmask(SIG_BLOCK, &all, &before_);
    ++thread_state.starting;
  }
  ~Starting() {
    --thread_state.starting;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Starting(const Starting &) = delete;
  Starting &operator=(const Starting &) = delete;

 private:
  sigset_t before_;
};

void *store_slot(unsigned hook, void *target) {
  __atomic_store_n(&ration_slots[hook], target, __ATOMIC_RELEASE);
  return target;
}

// Decides, once for the process, where the entries lead. Only the thread that decides it writes to stderr.
State resolve_state() {
  if (disabled()) {
    __atomic_store_n(&state, static_cast<int>(State::kInert), __ATOMIC_RELEASE);
    return State::kInert;
  }
  char path[kPathMax];
  const char *why = nullptr;
  bool may_pass = false;
  const RationCoreAbi *core = load_core(path, why, may_pass);
  if (may_pass) {
    __atomic_store_n(&failed_at_ns, now_ns(), __ATOMIC_RELAXED);
    const int before = __atomic_load_n(&failed_tries, __ATOMIC_RELAXED);
    if (before < kTriesAtOnce && __atomic_fetch_add(&failed_tries, 1, __ATOMIC_RELAXED) == 0) {
      say(why, path, " until it can be");
    }
    return State::kClosedNow;
  }
  if (core != nullptr && core->begin() == 0) {
    why = "cannot start its core ";
    core = nullptr;
  }
  if (core != nullptr) {
    for (unsigned hook = 0; hook < kHookCount; ++hook) {
      store_slot(hook, core->bodies[hook]);
    }
  }
  int unknown = static_cast<int>(State::kUnknown);
  const State resolved = core != nullptr ? State::kBound : State::kClosed;
  if (__atomic_compare_exchange_n(&state, &unknown, static_cast<int>(resolved), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE) &&
      resolved == State::kClosed) {
    say(why, path, "");
  }
  return static_cast<State>(__atomic_load_n(&state, __ATOMIC_ACQUIRE));
}

void *target_of(unsigned hook) {
  // The driver or the core's start is calling back on the thread that is loading the core.
  if (thread_state.starting > 0) {
    return real_function(hook);
  }
  auto resolved = static_cast<State>(__atomic_load_n(&state, __ATOMIC_ACQUIRE));
  if (resolved == State::kUnknown && has_just_failed()) {
    return closed_target(hook);
  }
  if (resolved == State::kUnknown) {
    const Starting starting;
    const ForkExclusion no_forks;  // a child would inherit a half-changed loader
    on_own_stack([](void *answer) { *static_cast<State *>(answer) = resolve_state(); }, &resolved);
  }
  switch (resolved) {
    case State::kBound:
      return __atomic_load_n(&ration_slots[hook], __ATOMIC_ACQUIRE);
    case State::kInert:
      return store_slot(hook, real_function(hook));
    case State::kClosedNow:
      return closed_target(hook);
    default:
      return store_slot(hook, closed_target(hook));
  }
}

const RationCoreAbi *core_for_nvml() {
  char path[kPathMax];
  const char *why = nullptr;
  bool may_pass = false;
  const RationCoreAbi *core = load_core(path, why, may_pass);
  if (core != nullptr) {
    core->begin_nvml();
  }
  return core;
}

// An NVML call needs the core but initialises nothing: no driver, no log. If there is no core, NVML's own function is
// used, without a message, because no memory is at stake.
void *nvml_target_of(unsigned hook) {
  bool found = false;
  void *real_one = real_nvml_function(hook, found);
  if (thread_state.starting > 0 || !found) {
    return real_one;
  }
  const RationCoreAbi *core = nullptr;
  if (!disabled()) {
    const Starting starting;
    const ForkExclusion no_forks;
    on_own_stack([](void *answer) { *static_cast<const RationCoreAbi **>(answer) = core_for_nvml(); }, &core);
  }
  return store_slot(kHookCount + hook, core != nullptr ? core->nvml_bodies[hook] : real_one);
}

void *bind(unsigned hook) {
  const int before = errno;
  void *target = hook < kHookCount ? target_of(hook) : nvml_target_of(hook - kHookCount);
  leave_no_error();
  errno = before;
  return target;
}

}  // namespace

const RationCoreAbi *started_core() {
  return __atomic_load_n(&loaded_core, __ATOMIC_ACQUIRE);
}

void say(const char *text, const char *detail, const char *how_long) {
  constexpr char kPrefix[] = "ration: libration.so ";
  constexpr char kRefused[] = ": every allocation is refused";
  constexpr char kSuffix[] = " (RATION_DISABLE=1 runs without Ration)\n";
  char line[kPathMax + 256];
  size_t used = 0;
  for (const char *part : {kPrefix, text, detail, kRefused, how_long, kSuffix}) {
    for (; *part != '\0' && used < sizeof(line); ++part) {
      line[used++] = *part;
    }
  }
  write_quietly(STDERR_FILENO, line, used);
}

}  // namespace ration::preload

extern "C" __attribute__((visibility("hidden"))) void *ration_preload_bind(unsigned hook) {
  return ration::preload::bind(hook);
}

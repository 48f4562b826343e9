// The door to the core: binds the entries at the first CUDA call, or closes them when there is no core to be had.
// Layer: front. Called from: ration_first_use in trampolines_*.S.
// Threads: no lock is held across dlopen or dlsym: a thread inside a library's constructor holds the loader's lock and
// may arrive here. Racing threads load the same core (the loader serialises them) and store equal slots.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "front.h"
#include "link_map.h"

extern "C" char **environ;

namespace ration::front {
namespace {

constexpr char kCoreName[] = "libration-core.so";
constexpr size_t kPathMax = 4096;

enum class State : int { kUnknown = 0, kOpen, kInert, kClosed };
int state;  // a State

__attribute__((tls_model("initial-exec"))) __thread RationThread thread_state;

RationThread *this_thread() {
  return &thread_state;
}

size_t length(const char *text) {
  size_t n = 0;
  while (text[n] != '\0') {
    ++n;
  }
  return n;
}

constexpr char kDisable[] = "RATION_DISABLE=";

// `environ` is null before libc's own constructor (.preinit_array) and after clearenv(); the kernel still knows what
// the process was started with.
bool disabled_at_start() {
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  constexpr char kWanted[] = "RATION_DISABLE=1";  // with its terminating zero, as the entries have theirs
  char chunk[1024];
  size_t matched = 0;
  bool found = false;
  bool differs = false;
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0 && !found; got = read(file, chunk, sizeof(chunk))) {
    for (ssize_t i = 0; i < got && !found; ++i) {
      differs = differs || chunk[i] != kWanted[matched];
      found = !differs && ++matched == sizeof(kWanted);
      if (chunk[i] == '\0') {
        matched = 0;
        differs = false;
      }
    }
  }
  close(file);
  return found;
}

// The settings live in the core; this one must work without it.
bool disabled() {
  if (environ == nullptr) {
    return disabled_at_start();
  }
  for (char **entry = environ; *entry != nullptr; ++entry) {
    if (starts_with(*entry, kDisable)) {
      return same(*entry + sizeof(kDisable) - 1, "1");
    }
  }
  return false;
}

// The file that `address` is mapped from. The loader knows a relative LD_PRELOAD path as it was written, and the
// program may have changed its folder since; the kernel knows the file.
bool mapped_file(uintptr_t address, char *path) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  char chunk[1024];
  uintptr_t bounds[2] = {0, 0};
  size_t field = 0;   // 0 start, 1 end, 2.. the rest of the line
  size_t stored = 0;  // bytes of the path
  bool found = false;
  bool in_path = false;
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0 && !found; got = read(file, chunk, sizeof(chunk))) {
    for (ssize_t i = 0; i < got && !found; ++i) {
      const char c = chunk[i];
      if (c == '\n') {
        found = in_path && bounds[0] <= address && address < bounds[1];
        if (!found) {
          bounds[0] = bounds[1] = 0;
          field = stored = 0;
          in_path = false;
        }
      } else if (field < 2 && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
        bounds[field] = bounds[field] * 16 + static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (field < 2) {
        ++field;
      } else if ((in_path || c == '/') && stored + 1 < kPathMax) {
        in_path = true;
        path[stored++] = c;
      }
    }
  }
  close(file);
  path[stored] = '\0';
  return found;
}

// The core lies beside the front, whatever the current folder is.
bool core_path(char *path) {
  const link_map *own = own_map();
  if (own == nullptr || own->l_name == nullptr) {
    return false;
  }
  const size_t own_length = length(own->l_name);
  if (own->l_name[0] == '/' && own_length < kPathMax) {
    for (size_t i = 0; i <= own_length; ++i) {
      path[i] = own->l_name[i];
    }
  } else if (!mapped_file(reinterpret_cast<uintptr_t>(&core_path), path)) {
    return false;
  }
  char *end = path + (base_name(path) - path);
  if (static_cast<size_t>(end - path) + sizeof(kCoreName) > kPathMax) {
    return false;
  }
  for (size_t i = 0; i < sizeof(kCoreName); ++i) {
    end[i] = kCoreName[i];
  }
  return true;
}

// A file that ends before its last section header was not written to its end: the loader would map it all the same and
// the process would die of SIGBUS.
bool is_whole(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  ElfW(Ehdr) header;
  struct stat status;
  const bool readable = read(file, &header, sizeof(header)) == sizeof(header) && fstat(file, &status) == 0;
  close(file);
  const auto sections = static_cast<size_t>(header.e_shnum) * header.e_shentsize;
  return readable && header.e_shoff + sections <= static_cast<size_t>(status.st_size);
}

// Loads the core and starts it. nullptr: `why` and `path` say what went wrong. `path` holds kPathMax bytes.
const RationCore *open_core(char *path, const char *&why) {
  path[0] = '\0';
  if (!core_path(path)) {
    why = "cannot tell where libration.so was loaded from, so its core cannot be found";
    return nullptr;
  }
  void *handle = is_whole(path) ? real().dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    why = "cannot load its core ";
    return nullptr;
  }
  static const RationDoor door = {RATION_VERSION, real().dlopen, real().dlsym, &any_driver,
                                  &this_thread,   &coverage,     entries,      kHookCount};
  const auto start = reinterpret_cast<ration_core_start_t>(real().dlsym(handle, "ration_core_start"));
  const RationCore *core = start != nullptr ? start(&door) : nullptr;
  if (core == nullptr) {
    why = "cannot start its core ";
  } else if (core->hook_count != kHookCount || !same(core->build, RATION_VERSION)) {
    why = "is of another build than its core ";
    core = nullptr;
  }
  return core;
}

void *store_slot(unsigned hook, void *target) {
  __atomic_store_n(&ration_slots[hook], target, __ATOMIC_RELEASE);
  return target;
}

// Settles once for the process what the entries lead to; only the thread that settles it speaks.
State settle() {
  if (disabled()) {
    __atomic_store_n(&state, static_cast<int>(State::kInert), __ATOMIC_RELEASE);
    return State::kInert;
  }
  char path[kPathMax];
  const char *why = nullptr;
  const RationCore *core = open_core(path, why);
  if (core != nullptr) {
    for (unsigned hook = 0; hook < kHookCount; ++hook) {
      store_slot(hook, core->bodies[hook]);
    }
  }
  int unknown = static_cast<int>(State::kUnknown);
  const State settled = core != nullptr ? State::kOpen : State::kClosed;
  if (__atomic_compare_exchange_n(&state, &unknown, static_cast<int>(settled), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE) &&
      settled == State::kClosed) {
    say(why, path);
  }
  return static_cast<State>(__atomic_load_n(&state, __ATOMIC_ACQUIRE));
}

void *target_of(unsigned hook) {
  // The driver, or our own start, calling back on the thread that is opening the core.
  if (thread_state.depth > 0) {
    return real_function(hook);
  }
  auto settled = static_cast<State>(__atomic_load_n(&state, __ATOMIC_ACQUIRE));
  if (settled == State::kUnknown) {
    ++thread_state.depth;
    settled = settle();
    --thread_state.depth;
  }
  switch (settled) {
    case State::kOpen:
      return __atomic_load_n(&ration_slots[hook], __ATOMIC_ACQUIRE);
    case State::kInert:
      return store_slot(hook, real_function(hook));
    default:
      return store_slot(hook, closed_target(hook));
  }
}

void *bind(unsigned hook) {
  void *target = target_of(hook);
  leave_no_error();
  return target;
}

}  // namespace

void say(const char *text, const char *detail) {
  constexpr char kPrefix[] = "ration: libration.so ";
  constexpr char kSuffix[] = ": every allocation is refused (RATION_DISABLE=1 runs without Ration)\n";
  char line[kPathMax + 256];
  size_t used = 0;
  for (const char *part : {kPrefix, text, detail, kSuffix}) {
    for (; *part != '\0' && used < sizeof(line); ++part) {
      line[used++] = *part;
    }
  }
  const ssize_t ignored = write(STDERR_FILENO, line, used);
  (void)ignored;
}

}  // namespace ration::front

extern "C" __attribute__((visibility("hidden"))) void *ration_front_bind(unsigned hook) {
  return ration::front::bind(hook);
}

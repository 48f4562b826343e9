// Answers dlsym, dlvsym and dlopen: calls the real function, then replaces a hooked function of the driver or NVML by
// our export. Never returns a function that the driver or NVML lacks.
// Layer: preload. Called from: trampolines_*.S, on any thread, possibly before every constructor of the process.
#include <dlfcn.h>

#include "hook_names.h"
#include "link_map.h"
#include "loaded_objects.h"
#include "preload.h"
#include "unknown_names.h"
#include "variables.h"

namespace ration::preload {
namespace {

constexpr bool is_capital(char letter) {
  return letter >= 'A' && letter <= 'Z';
}

// Tests the prefix of names that may be replaced; this test is all that other names cost (curl_easy_init,
// cublasCreate). A name that passes but has no hook costs one more table search.
constexpr bool is_driver_name(const char *name) {
  return name[0] == 'c' && name[1] == 'u' && is_capital(name[2]);
}
constexpr bool is_management_name(const char *name) {
  return name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l' && is_capital(name[4]);
}
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) static_assert(is_driver_name(#symbol));
#define RATION_NVML_HOOK(symbol, parameters) static_assert(is_management_name(#symbol));
#include "hook_table.inc"
#undef RATION_HOOK
#undef RATION_NVML_HOOK
bool is_loader_name(const char *name) {
  return name[0] == 'd' && name[1] == 'l';
}

bool is_driver_file(const char *path) {
  const char *file = base_name(path);
  return starts_with(file, "libcuda.so") || starts_with(file, "libnvidia-ml.so");
}

struct Answer {
  bool given;
  void *value;
};
constexpr Answer kGoOn{false, nullptr};

// One look-up, with or without a version.
struct Lookup {
  RationCall &call;
  const char *version;

  void *handle() const { return reinterpret_cast<void *>(call.first); }
  const char *name() const { return reinterpret_cast<const char *>(call.second); }
  void *ask_real(void *in) const {
    return version != nullptr ? real().dlvsym(in, name(), version) : real().dlsym(in, name());
  }
};

// The object that contains a caller's address; nullptr if there is none.
const link_map *object_of(uintptr_t caller) {
  Dl_info info;
  if (real().dladdr1 == nullptr) {
    return real().dladdr(reinterpret_cast<void *>(caller), &info) != 0 ? map_at(info.dli_fbase) : nullptr;
  }
  link_map *map = nullptr;
  return real().dladdr1(reinterpret_cast<void *>(caller), &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) != 0
             ? map
             : nullptr;
}

// True if the caller is an interposer after this library that looks up the real dlsym. It must not get ours: we call
// its dlsym, so the two would call each other without end. We never call an interposer before this library.
bool caller_interposes(uintptr_t caller) {
  const link_map *map = object_of(caller);
  return map != nullptr && defines(*map, "dlsym") && precedes(*map);
}

// True if a look-up found a real loader function: the next one after this library, or libc's own (libdl's before glibc
// 2.34) after other interposers.
template <class Function>
bool is_real(const void *found, Function next) {
  Dl_info info;
  if (found == reinterpret_cast<void *>(next)) {
    return true;
  }
  if (real().dladdr(found, &info) == 0 || info.dli_fname == nullptr) {
    return false;
  }
  const char *file = base_name(info.dli_fname);
  return starts_with(file, "libc.so.") || starts_with(file, "libdl.so.");
}

// A library with hooked functions. entry_for() returns our export for what a look-up by `caller` found (nullptr: none).
// A library's look-ups of its own functions are not replaced: on WSL2 both libraries only load the real ones. Driver
// functions that are neither replaced nor in the catalogue are counted.
struct Driver {
  static constexpr const char *kFile = "libcuda.so";
  static bool has(const void *, const void *found) { return in_driver(reinterpret_cast<uintptr_t>(found)); }
  static void *loaded() { return loaded_driver(); }
  static void *found() { return found_driver(); }
  static void *entry_for(void *driver, const void *found, const char *name, uintptr_t caller) {
    const Hook hook = hook_at(driver, found, name);
    return hook == kHookCount || in_driver(caller) ? nullptr : entries[hook];
  }
  static void not_swapped(const void *found, const char *name, uintptr_t caller) {
    if (has(nullptr, found) && !in_driver(caller)) {
      note_given(name);
    }
  }
  static void passed_on(const char *name, uintptr_t caller) {
    if (!in_driver(caller)) {
      note_passed_on(name);
    }
  }
};
struct Management {
  static constexpr const char *kFile = "libnvidia-ml.so";
  static bool has(void *nvml, const void *found) {
    return object_of(reinterpret_cast<uintptr_t>(found)) == nvml;  // glibc's handle of an object is its entry
  }
  static void *loaded() { return loaded_nvml(); }
  static void *found() { return found_nvml(); }
  static void *entry_for(void *nvml, const void *found, const char *name, uintptr_t caller) {
    void *entry = nvml_entry_for(nvml, found, name);
    return entry == nullptr || object_of(reinterpret_cast<uintptr_t>(found)) == object_of(caller) ? nullptr : entry;
  }
  static void not_swapped(const void *, const char *, uintptr_t) {}
  static void passed_on(const char *, uintptr_t) {}
};

// True if a function belongs to another file of the same library: a program may open copies by their paths. Functions
// that the library itself looks up in another file are left alone (WSL2).
// Design: design/interception.md#copies-of-the-driver
template <class Library>
bool is_of_a_copy(void *library, const void *found, uintptr_t caller) {
  if (Library::has(library, found) || disabled()) {
    return false;
  }
  const link_map *map = object_of(reinterpret_cast<uintptr_t>(found));
  const link_map *asking = object_of(caller);
  return map != nullptr && is_called(*map, Library::kFile) &&
         (asking == nullptr || !is_called(*asking, Library::kFile));
}

void *libc() {
  static void *handle;  // racing threads store equal values
  void *found = __atomic_load_n(&handle, __ATOMIC_ACQUIRE);
  if (found == nullptr) {
    found = real().dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    __atomic_store_n(&handle, found, __ATOMIC_RELEASE);
  }
  return found;
}

// True if the program would get our export. With RTLD_NEXT that depends on where the caller is in search order, and no
// object after us may define the name.
bool only_ours(const Lookup &lookup) {
  if (lookup.handle() != RTLD_NEXT) {
    return is_entry(lookup.ask_real(lookup.handle()));
  }
  const link_map *from = object_of(lookup.call.caller);
  return from != nullptr && !precedes(*from) && is_entry(lookup.ask_real(RTLD_DEFAULT)) &&
         lookup.ask_real(RTLD_NEXT) == nullptr;
}

// Our exports must not make a process without CUDA appear to have it. While no such library is loaded, a name that only
// this library defines is looked up in libc, which returns NULL and sets the usual dlerror.
Answer without_library(const Lookup &lookup) {
  if (only_ours(lookup)) {
    lookup.call.first = reinterpret_cast<uintptr_t>(libc());
  }
  return kGoOn;
}

template <class Library>
Answer name_in(const Lookup &lookup) {
  void *library = Library::loaded();
  if (library == nullptr) {
    return without_library(lookup);
  }
  if (lookup.handle() == RTLD_DEFAULT) {
    Library::passed_on(lookup.name(), lookup.call.caller);
    return kGoOn;  // as for a direct link, the program's own definition or ours comes first
  }
  void *found = lookup.ask_real(lookup.handle());
  void *entry = found != nullptr ? Library::entry_for(library, found, lookup.name(), lookup.call.caller) : nullptr;
  // One copy serves the whole process: limits and devices belong to the driver that was found first.
  if (entry == nullptr && found != nullptr && is_of_a_copy<Library>(library, found, lookup.call.caller)) {
    found = lookup.ask_real(library);
    entry = found != nullptr ? Library::entry_for(library, found, lookup.name(), lookup.call.caller) : nullptr;
  }
  if (entry == nullptr) {
    Library::not_swapped(found, lookup.name(), lookup.call.caller);
    return {true, found};
  }
  count(coverage.dlsym);
  return {true, entry};
}

// RTLD_NEXT keeps its natural order, in which our exports precede the libraries that the program is linked with. But
// for a caller that is itself linked with the driver, the next definition is the driver's, which comes after ours. That
// answer is replaced, as for a look-up by handle. Exception: a library that defines the name or dlsym is an interposer,
// which would be led back to itself.
// Design: design/interception.md#rtld_next
template <class Library>
Answer next_name_in(const Lookup &lookup) {
  void *library = Library::loaded();
  if (library == nullptr) {
    return without_library(lookup);
  }
  const link_map *from = object_of(lookup.call.caller);
  const bool is_library = from != nullptr && from->l_name != nullptr && from->l_name[0] != '\0';
  if (!is_library || defines(*from, lookup.name()) || defines(*from, "dlsym")) {
    return kGoOn;
  }
  // A look-up by its handle searches the library and those that it is linked with.
  void *handle = real().dlopen(from->l_name, RTLD_LAZY | RTLD_NOLOAD);
  const void *found = handle != nullptr ? lookup.ask_real(handle) : nullptr;
  if (handle != nullptr) {
    real().dlclose(handle);
  }
  void *entry = found != nullptr ? Library::entry_for(library, found, lookup.name(), lookup.call.caller) : nullptr;
  if (entry == nullptr) {
    return kGoOn;
  }
  leave_no_error();
  count(coverage.dlsym);
  return {true, entry};
}

// Names that only begin like hooked ones are passed on. In a look-up by handle, once the library is known, the address
// that was found decides faster than the name.
template <class Library>
Answer hooked_name(const Lookup &lookup) {
  if ((lookup.handle() == RTLD_NEXT || Library::found() == nullptr) && !is_hooked(lookup.name())) {
    Library::passed_on(lookup.name(), lookup.call.caller);
    return kGoOn;
  }
  return lookup.handle() == RTLD_NEXT ? next_name_in<Library>(lookup) : name_in<Library>(lookup);
}

Answer loader_name(const Lookup &lookup) {
  void *found = lookup.ask_real(lookup.handle());
  if (found == nullptr || lookup.handle() == RTLD_DEFAULT) {
    return kGoOn;
  }
  void *ours = nullptr;
  if (same(lookup.name(), "dlsym") && is_real(found, real().dlsym)) {
    ours = reinterpret_cast<void *>(&ration_dlsym_entry);
  } else if (same(lookup.name(), "dlvsym") && is_real(found, real().dlvsym)) {
    ours = reinterpret_cast<void *>(&ration_dlvsym_entry);
  } else if (same(lookup.name(), "dlopen") && is_real(found, real().dlopen)) {
    ours = reinterpret_cast<void *>(&ration_dlopen_entry);
  } else if (same(lookup.name(), "dlmopen") && is_real(found, real().dlmopen)) {
    ours = reinterpret_cast<void *>(&ration_dlmopen_entry);
  }
  if (ours == nullptr || caller_interposes(lookup.call.caller)) {
    return {true, found};
  }
  return {true, ours};
}

int resolve(const Lookup &lookup, void *real_function) {
  lookup.call.target = real_function;
  const char *name = lookup.name();
  if (name == nullptr) {
    return 0;
  }
  Answer answer = kGoOn;
  if ((is_driver_name(name) || is_management_name(name)) && may_have_new_variables() && is_hooked(name)) {
    return_variables();
  }
  if (is_driver_name(name)) {
    answer = hooked_name<Driver>(lookup);
  } else if (is_management_name(name)) {
    answer = hooked_name<Management>(lookup);
  } else if (lookup.handle() != RTLD_NEXT && is_loader_name(name)) {
    answer = loader_name(lookup);
  }
  lookup.call.result = answer.value;
  return answer.given ? 1 : 0;
}

}  // namespace
}  // namespace ration::preload

extern "C" {

__attribute__((visibility("hidden"))) int ration_resolve_dlsym(RationCall *call) {
  return ration::preload::resolve({*call, nullptr}, reinterpret_cast<void *>(ration::preload::real().dlsym));
}

__attribute__((visibility("hidden"))) int ration_resolve_dlvsym(RationCall *call) {
  const auto *version = reinterpret_cast<const char *>(call->third);
  void *real_function = reinterpret_cast<void *>(ration::preload::real().dlvsym);
  if (version == nullptr) {
    call->target = real_function;
    return 0;
  }
  return ration::preload::resolve({*call, version}, real_function);
}

// RTLD_DEEPBIND would make the library's own references bypass every preloaded library. It is removed before the call,
// because nothing runs after a tail jump.
__attribute__((visibility("hidden"))) int ration_resolve_dlopen(RationCall *call) {
  ration::preload::variables_may_come(reinterpret_cast<const char *>(call->first));
  call->second &= ~static_cast<uintptr_t>(RTLD_DEEPBIND);
  call->target = reinterpret_cast<void *>(ration::preload::real().dlopen);
  return 0;
}

// As for dlopen. In addition, the driver is loaded into the base namespace: in another one it would be a copy that no
// hook of ours reaches.
__attribute__((visibility("hidden"))) int ration_resolve_dlmopen(RationCall *call) {
  const auto *file = reinterpret_cast<const char *>(call->second);
  ration::preload::variables_may_come(file);
  if (file != nullptr && ration::preload::is_driver_file(file) && !ration::preload::disabled()) {
    call->first = static_cast<uintptr_t>(LM_ID_BASE);
  }
  if (static_cast<Lmid_t>(call->first) == LM_ID_BASE) {
    call->third &= ~static_cast<uintptr_t>(RTLD_DEEPBIND);
  }
  call->target = reinterpret_cast<void *>(ration::preload::real().dlmopen);
  return 0;
}

}  // extern "C"

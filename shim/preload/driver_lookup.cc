// Finds the real loader functions and the real driver, and recognises the driver's functions by address.
// Layer: preload. Threads: no lock; every table is a pure function of the process, so racing writers store equal values
// and readers see either nothing or the final value (release/acquire on the `ready` words).
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>

#include "link_map.h"
#include "loaded_objects.h"
#include "preload.h"
#include "unknown_names.h"

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) \
  extern "C" __attribute__((visibility("hidden"))) void ration_entry_##symbol();
#include "hook_table.inc"
#undef RATION_HOOK

namespace ration::preload {

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) \
  reinterpret_cast<void *>(&ration_entry_##symbol),
void *const entries[kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) #symbol,
const char *const symbols[kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

RationCoverage coverage;

namespace {

// Size of the open-addressing hash table of the addresses of the driver's hooked functions; at most a quarter is used.
constexpr unsigned address_slots() {
  unsigned slots = 64;
  while (slots < 4 * kHookCount) {
    slots *= 2;
  }
  return slots;
}
constexpr unsigned kAddressSlots = address_slots();

struct AddressTable {
  const void *addresses[kAddressSlots];
  uint16_t hooks[kAddressSlots];
};

// A symbol padded to whole words, so that it can be compared word by word.
struct Symbol {
  alignas(8) char text[56];
  unsigned bytes;  // including its NUL
};
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) {#symbol, sizeof(#symbol)},
constexpr Symbol padded[kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

uint64_t word_at(const char *text) {
  uint64_t word;
  __builtin_memcpy(&word, text, sizeof(word));
  return word;
}

// Compares with a program's string, eight bytes at a time; this is most of the cost of a replaced look-up. Every word
// begins inside the string, so it can be read whole unless it crosses into the next page. Little-endian.
bool is_named(const Symbol &symbol, const char *name) {
  constexpr uintptr_t kPage = 4096;  // the smallest page of both architectures
  for (unsigned at = 0; at < symbol.bytes; at += 8) {
    if ((reinterpret_cast<uintptr_t>(name + at) & (kPage - 1)) > kPage - 8) {
      return same(symbol.text + at, name + at);
    }
    const unsigned left = symbol.bytes - at;
    const uint64_t mask = left >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * left)) - 1;
    if (((word_at(symbol.text + at) ^ word_at(name + at)) & mask) != 0) {
      return false;
    }
  }
  return true;
}

struct Bounds {
  uintptr_t start;
  uintptr_t end;
};

Loader loader;
int loader_ready;
Library driver_library{"libcuda.so.1", "libcuda.so", nullptr, 0};
AddressTable table;
Bounds driver_bounds;
int table_ready;

unsigned slot_of(const void *address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return static_cast<unsigned>((bits >> 4) ^ (bits >> 10)) & (kAddressSlots - 1);
}

// The extent of the object that contains `address`, from its ELF header to the end of its last segment.
Bounds object_of(const void *address) {
  Dl_info info;
  if (real().dladdr(address, &info) == 0) {
    return {0, 0};
  }
  const auto base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  const auto *header = reinterpret_cast<const ElfW(Ehdr) *>(base);
  const auto *segment = reinterpret_cast<const ElfW(Phdr) *>(base + header->e_phoff);
  Bounds bounds{base, base};
  uintptr_t first = UINTPTR_MAX;  // virtual address that is mapped at base
  for (unsigned i = 0; i < header->e_phnum; ++i, ++segment) {
    if (segment->p_type == PT_LOAD) {
      first = segment->p_vaddr < first ? segment->p_vaddr : first;
      const uintptr_t end = base + (segment->p_vaddr - first) + segment->p_memsz;
      bounds.end = end > bounds.end ? end : bounds.end;
    }
  }
  return bounds;
}

void fill_table(void *driver) {
  Bounds bounds{0, 0};
  for (unsigned hook = 0; hook < kHookCount; ++hook) {
    const void *address = real().dlsym(driver, symbols[hook]);
    if (address == nullptr) {
      continue;
    }
    if (bounds.end == 0) {
      bounds = object_of(address);
    }
    unsigned slot = slot_of(address);
    while (table.addresses[slot] != nullptr && (table.addresses[slot] != address || table.hooks[slot] != hook)) {
      slot = (slot + 1) & (kAddressSlots - 1);
    }
    __atomic_store_n(&table.hooks[slot], static_cast<uint16_t>(hook), __ATOMIC_RELAXED);
    __atomic_store_n(&table.addresses[slot], address, __ATOMIC_RELAXED);
  }
  leave_no_error();  // the program's own look-up succeeded
  __atomic_store_n(&driver_bounds.start, bounds.start, __ATOMIC_RELAXED);
  __atomic_store_n(&driver_bounds.end, bounds.end, __ATOMIC_RELAXED);
  __atomic_store_n(&table_ready, 1, __ATOMIC_RELEASE);  // pairs with the acquire in hook_at
}

// Before glibc 2.34 these functions are in libdl, which a program may not have loaded, if its driver does not need it.
// Up to then, libc had a function that loads libdl for its own use.
void load_libdl() {
  constexpr int kByLibc = INT_MIN;  // __RTLD_DLOPEN
  const auto open = reinterpret_cast<void *(*)(const char *, int)>(next_definition("__libc_dlopen_mode"));
  if (open != nullptr) {
    open("libdl.so.2", RTLD_NOW | kByLibc);
  }
}

// Stand-ins for functions that no object defines: they find, load and know nothing.
void *no_open(const char *, int) {
  return nullptr;
}
void *no_symbol(void *, const char *) {
  return nullptr;
}
void *no_version(void *, const char *, const char *) {
  return nullptr;
}
void *no_namespace(Lmid_t, const char *, int) {
  return nullptr;
}
int no_close(void *) {
  return -1;
}
int no_address(const void *, Dl_info *) {
  return 0;
}

template <class Function>
void find(Function *&function, const char *name, Function *otherwise) {
  void *found = next_definition(name);
  function = found != nullptr ? reinterpret_cast<Function *>(found) : otherwise;
}

}  // namespace

const Loader &real() {
  if (__atomic_load_n(&loader_ready, __ATOMIC_ACQUIRE) == 0) {
    if (next_definition("dlsym") == nullptr) {
      load_libdl();
    }
    find(loader.dlopen, "dlopen", no_open);
    find(loader.dlvsym, "dlvsym", no_version);
    find(loader.dlmopen, "dlmopen", no_namespace);
    find(loader.dlclose, "dlclose", no_close);
    find(loader.dladdr, "dladdr", no_address);
    find<int(const void *, Dl_info *, void **, int)>(loader.dladdr1, "dladdr1", nullptr);
    find(loader.dlsym, "dlsym", no_symbol);
    __atomic_store_n(&loader_ready, 1, __ATOMIC_RELEASE);
  }
  return loader;
}

// The loader clears its last error when the next call of this kind begins (glibc's _dlerror_run).
void leave_no_error() {
  real().dlsym(RTLD_DEFAULT, "dlsym");
}

void *loaded_driver() {
  void *handle = found_driver();
  if (handle == nullptr) {
    handle = loaded_library(driver_library);
    if (handle != nullptr) {
      note_driver(handle);
    }
  }
  return handle;
}

void *found_driver() {
  return found_library(driver_library);
}

void *any_driver() {
  void *handle = loaded_driver();
  if (handle == nullptr && real().dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    handle = loaded_driver();
  }
  return handle;
}

bool is_entry(const void *address) {
  for (const void *entry : entries) {
    if (entry == address) {
      return true;
    }
  }
  return is_nvml_entry(address);
}

Hook hook_at(void *driver, const void *address, const char *symbol) {
  if (__atomic_load_n(&table_ready, __ATOMIC_ACQUIRE) == 0) {
    fill_table(driver);
  }
  for (unsigned slot = slot_of(address); table.addresses[slot] != nullptr; slot = (slot + 1) & (kAddressSlots - 1)) {
    // Two exports may share one address (identical code folding); the name decides between them.
    if (table.addresses[slot] == address && (symbol == nullptr || is_named(padded[table.hooks[slot]], symbol))) {
      return static_cast<Hook>(table.hooks[slot]);
    }
  }
  return kHookCount;
}

bool in_driver(uintptr_t address) {
  return driver_bounds.start <= address && address < driver_bounds.end;
}

}  // namespace ration::preload

// Reads the loader's list of objects without any libc call, so it works before anything is initialised.
// Layer: preload. Threads: only reads; the list belongs to the loader. Called from: the first interposed call, possibly
// before every constructor or inside a sanitizer's start (which interposes dl_iterate_phdr and strcmp).
#pragma once

#include <link.h>
#include <stdint.h>

namespace ration::preload {

// Compares two C strings without any library call.
bool same(const char *a, const char *b);
bool starts_with(const char *text, const char *prefix);
const char *base_name(const char *path);

// This library's entry in the list; nullptr before the list exists.
const link_map *own_map();

// The list entry of the object that was loaded at this address; nullptr if there is none.
const link_map *map_at(const void *base);

// The address of `name` in the first object after this library that defines it, as dlsym(RTLD_NEXT) called from here
// would return it. The default version is preferred to hidden versions (DT_VERSYM). nullptr if no object defines it.
void *next_definition(const char *name);

// True if this one object defines `name`.
bool defines(const link_map &map, const char *name);

// True if the object's file name, or its own name (DT_SONAME), begins with `prefix`.
bool is_called(const link_map &map, const char *prefix);

// True if another copy of this library precedes this copy in search order, for example in a container where LD_PRELOAD
// names one copy and /etc/ld.so.preload another. Two copies would limit a process twice.
// Design: design/interception.md#two-copies-of-ration
bool follows_another();

// The symbol tables of one object.
struct SymbolTable {
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;
  const uint32_t *gnu_hash = nullptr;
  const uint16_t *versions = nullptr;
};
SymbolTable symbol_table(const link_map &map);

// Converts an address from a dynamic section. glibc has already relocated it in place, except in the read-only vDSO.
template <class T>
const T *pointer_of(const link_map &map, ElfW(Addr) value) {
  return reinterpret_cast<const T *>(value < map.l_addr ? value + map.l_addr : value);
}

constexpr uint32_t gnu_hash_of(const char *name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

// `hash`: gnu_hash_of(name). nullptr if the table does not define the name.
const ElfW(Sym) * definition_in(const SymbolTable &table, const char *name, uint32_t hash);

}  // namespace ration::preload

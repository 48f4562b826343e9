// Reads the loader's list of objects without any libc call, so it works before anything is initialised.
// Layer: preload. Threads: reads only; the list belongs to the loader. Called from: the first interposed call, possibly
// before every constructor or inside a sanitizer's start (which interposes dl_iterate_phdr and strcmp).
#pragma once

#include <link.h>
#include <stdint.h>

namespace ration::preload {

// Equality of C strings, freestanding.
bool same(const char *a, const char *b);
bool starts_with(const char *text, const char *prefix);
const char *base_name(const char *path);

// This library's entry in the list; nullptr before the list exists.
const link_map *own_map();

// The entry of the object that was loaded at this address; nullptr: none.
const link_map *map_at(const void *base);

// The address of `name` in the first object after this library that defines it, as dlsym(RTLD_NEXT) from here. The
// default version is preferred to hidden ones (DT_VERSYM). nullptr: no object defines it.
void *next_definition(const char *name);

// Whether this one object defines `name`.
bool defines(const link_map &map, const char *name);

// Whether the file of an object, or the name that it gives itself, begins so.
bool is_called(const link_map &map, const char *prefix);

// Whether a copy of this library is before it in search order: LD_PRELOAD in a container whose /etc/ld.so.preload names
// another. Two would limit a process twice.
// Design: design/interception.md#two-copies-of-ration
bool follows_another();

// What one object defines.
struct SymbolTable {
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;
  const uint32_t *gnu_hash = nullptr;
  const uint16_t *versions = nullptr;
};
SymbolTable symbol_table(const link_map &map);

// An address in a dynamic section. glibc relocates these in place except in the vDSO, whose section is read-only.
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

// `hash`: gnu_hash_of(name). nullptr: it does not define it.
const ElfW(Sym) * definition_in(const SymbolTable &table, const char *name, uint32_t hash);

}  // namespace ration::preload

#include "link_map.h"

#include <elf.h>
#include <sys/auxv.h>

#include <initializer_list>

// This library's dynamic section, as the linker names it; only this library's link_map has it as l_ld.
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

// Only glibc has it: a strong reference, which musl's loader could not resolve, would end the program.
extern r_debug _r_debug __attribute__((weak));

namespace ration::preload {
namespace {

// musl's loader leaves its list where debuggers look for it: in the program's DT_DEBUG.
const link_map *map_for_debuggers() {
  const auto *const headers = reinterpret_cast<const ElfW(Phdr) *>(getauxval(AT_PHDR));
  const unsigned long count = getauxval(AT_PHNUM);
  ElfW(Addr) base = 0;
  const ElfW(Phdr) *dynamic = nullptr;
  for (unsigned long i = 0; headers != nullptr && i < count; ++i) {
    if (headers[i].p_type == PT_PHDR) {
      base = reinterpret_cast<ElfW(Addr)>(headers) - headers[i].p_vaddr;
    } else if (headers[i].p_type == PT_DYNAMIC) {
      dynamic = &headers[i];
    }
  }
  if (dynamic == nullptr) {
    return nullptr;
  }
  for (const auto *entry = reinterpret_cast<const ElfW(Dyn) *>(base + dynamic->p_vaddr); entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) {
      return reinterpret_cast<const r_debug *>(entry->d_un.d_ptr)->r_map;
    }
  }
  return nullptr;
}

const link_map *first_map() {
  return &_r_debug != nullptr ? _r_debug.r_map : map_for_debuggers();
}

constexpr unsigned kHiddenVersion = 0x8000;  // DT_VERSYM bit: not the default version (gABI, symbol versioning)

}  // namespace

SymbolTable symbol_table(const link_map &map) {
  SymbolTable table;
  if (map.l_ld == nullptr) {
    return table;
  }
  for (const ElfW(Dyn) *entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        table.symbols = pointer_of<ElfW(Sym)>(map, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        table.strings = pointer_of<char>(map, entry->d_un.d_ptr);
        break;
      case DT_GNU_HASH:
        table.gnu_hash = pointer_of<uint32_t>(map, entry->d_un.d_ptr);
        break;
      case DT_VERSYM:
        table.versions = pointer_of<uint16_t>(map, entry->d_un.d_ptr);
        break;
      default:
        break;
    }
  }
  return table;
}

// DT_GNU_HASH layout: nbuckets, symoffset, bloom_size, bloom_shift, bloom[], buckets[], chain[].
const ElfW(Sym) * definition_in(const SymbolTable &table, const char *name, uint32_t hash) {
  if (table.gnu_hash == nullptr || table.symbols == nullptr || table.strings == nullptr) {
    return nullptr;
  }
  const uint32_t bucket_count = table.gnu_hash[0];
  const uint32_t first = table.gnu_hash[1];
  const uint32_t bloom_words = table.gnu_hash[2];
  const uint32_t *buckets =
      table.gnu_hash + 4 + bloom_words * static_cast<uint32_t>(sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = buckets + bucket_count;
  if (bucket_count == 0 || bloom_words == 0) {
    return nullptr;
  }
  const auto *bloom = reinterpret_cast<const ElfW(Addr) *>(table.gnu_hash + 4);
  constexpr uint32_t kBits = 8 * sizeof(ElfW(Addr));
  const ElfW(Addr) word = bloom[hash / kBits % bloom_words];
  const ElfW(Addr) mask = ElfW(Addr){1} << hash % kBits | ElfW(Addr){1} << (hash >> table.gnu_hash[3]) % kBits;
  if ((word & mask) != mask) {
    return nullptr;
  }
  const ElfW(Sym) *hidden = nullptr;
  for (uint32_t index = buckets[hash % bucket_count]; index >= first; ++index) {
    const uint32_t value = chain[index - first];
    const ElfW(Sym) &symbol = table.symbols[index];
    if ((value | 1U) == (hash | 1U) && symbol.st_shndx != SHN_UNDEF && same(table.strings + symbol.st_name, name)) {
      if (table.versions == nullptr || (table.versions[index] & kHiddenVersion) == 0) {
        return &symbol;
      }
      hidden = &symbol;
    }
    if ((value & 1U) != 0) {
      break;
    }
  }
  return hidden;
}

bool same(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

bool starts_with(const char *text, const char *prefix) {
  while (*prefix != '\0') {
    if (*text++ != *prefix++) {
      return false;
    }
  }
  return true;
}

const char *base_name(const char *path) {
  const char *base = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') {
      base = path + 1;
    }
  }
  return base;
}

const link_map *own_map() {
  for (const link_map *map = first_map(); map != nullptr; map = map->l_next) {
    if (map->l_ld == _DYNAMIC) {
      return map;
    }
  }
  return nullptr;
}

const link_map *map_at(const void *base) {
  for (const link_map *map = first_map(); map != nullptr; map = map->l_next) {
    if (map->l_addr == reinterpret_cast<ElfW(Addr)>(base)) {
      return map;
    }
  }
  return nullptr;
}

bool is_called(const link_map &map, const char *prefix) {
  if (map.l_name != nullptr && starts_with(base_name(map.l_name), prefix)) {
    return true;
  }
  const SymbolTable table = symbol_table(map);
  for (const ElfW(Dyn) *entry = map.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME && table.strings != nullptr) {
      return starts_with(table.strings + entry->d_un.d_val, prefix);
    }
  }
  return false;
}

bool follows_another() {
  for (const link_map *map = first_map(); map != nullptr && map->l_ld != _DYNAMIC; map = map->l_next) {
    if (is_called(*map, "libration.so")) {
      return true;
    }
  }
  return false;
}

bool defines(const link_map &map, const char *name) {
  return definition_in(symbol_table(map), name, gnu_hash_of(name)) != nullptr;
}

void *next_definition(const char *name) {
  const link_map *own = own_map();
  // If this library was loaded later (by dlopen), libc precedes it, so the second round searches the whole list.
  for (const link_map *map : {own != nullptr ? static_cast<const link_map *>(own->l_next) : nullptr, first_map()}) {
    for (; map != nullptr; map = map->l_next) {
      if (map == own) {
        continue;
      }
      if (const ElfW(Sym) *symbol = definition_in(symbol_table(*map), name, gnu_hash_of(name))) {
        return reinterpret_cast<void *>(map->l_addr + symbol->st_value);
      }
    }
  }
  return nullptr;
}

}  // namespace ration::preload

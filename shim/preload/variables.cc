#include "variables.h"

#include <elf.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook_names.h"
#include "link_map.h"
#include "loaded_objects.h"
#include "preload.h"

namespace ration::preload {
namespace {

struct HookName {
  const char *text;
  uint32_t hash;
};
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) {#symbol, gnu_hash_of(#symbol)},
#define RATION_NVML_HOOK(symbol, parameters) {#symbol, gnu_hash_of(#symbol)},
constexpr HookName names[] = {
#include "hook_table.inc"
};

#if defined(__x86_64__)
constexpr uint64_t kInTable = R_X86_64_GLOB_DAT;
constexpr uint64_t kInData = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint64_t kInTable = R_AARCH64_GLOB_DAT;
constexpr uint64_t kInData = R_AARCH64_ABS64;
#endif

int objects_may_be_new = 1;

// The link_map of an object from its dl_phdr_info, as far as the functions of link_map.h need it.
link_map map_of(const dl_phdr_info &info) {
  link_map map{};
  map.l_addr = info.dlpi_addr;
  map.l_name = const_cast<char *>(info.dlpi_name);
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      map.l_ld = reinterpret_cast<ElfW(Dyn) *>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  return map;
}

// The address of the variable that an object exports under this name; 0 if there is none.
ElfW(Addr) variable_in(const link_map &map, const SymbolTable &table, const char *name, uint32_t hash) {
  const ElfW(Sym) *symbol = definition_in(table, name, hash);
  return symbol != nullptr && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
                 ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT
             ? map.l_addr + symbol->st_value
             : 0;
}

bool has_variables(const link_map &map) {
  const SymbolTable table = symbol_table(map);
  for (const HookName &name : names) {
    if (variable_in(map, table, name.text, name.hash) != 0) {
      return true;
    }
  }
  return false;
}

// True if the object lists another one among the libraries that it needs.
bool needs(const link_map &map, const SymbolTable &table, const char *prefix_or_path, bool is_prefix) {
  const char *file = base_name(prefix_or_path);
  for (const ElfW(Dyn) *entry = map.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) {
      continue;
    }
    const char *needed = base_name(table.strings + entry->d_un.d_val);
    if (is_prefix ? starts_with(needed, prefix_or_path) : same(needed, file)) {
      return true;
    }
  }
  return false;
}

struct Wanted {
  const link_map *by;
  const char *name;
  ElfW(Addr) variable;
};

// Finds the variable in a library that `by` needs.
int find_needed(dl_phdr_info *info, size_t, void *argument) {
  auto &wanted = *static_cast<Wanted *>(argument);
  const link_map map = map_of(*info);
  if (map.l_name == nullptr || !needs(*wanted.by, symbol_table(*wanted.by), map.l_name, false)) {
    return 0;
  }
  wanted.variable = variable_in(map, symbol_table(map), wanted.name, gnu_hash_of(wanted.name));
  return wanted.variable != 0 ? 1 : 0;
}

// The variable to which a reference of this object would be bound without us; 0 if it means the function.
ElfW(Addr) variable_for(const link_map &map, const SymbolTable &table, const char *name) {
  const ElfW(Addr) own = variable_in(map, table, name, gnu_hash_of(name));
  if (own != 0 || needs(map, table, "libcuda.so", true)) {
    return own;
  }
  Wanted wanted{&map, name, 0};
  for_each_object(&find_needed, &wanted);
  return wanted.variable;
}

// The loader makes tables of references read-only once it has finished with them. Whether it has is not known here, so
// a page that is made writable stays so.
void store(ElfW(Addr) * slot, ElfW(Addr) value, bool is_protected) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(slot) / page * page;
  if (!is_protected || mprotect(reinterpret_cast<void *>(start), page, PROT_READ | PROT_WRITE) == 0) {
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  }
}

// False if the address may not be written to. `is_protected`: the loader makes it read-only.
bool place_of(const dl_phdr_info &info, uintptr_t at, bool &is_protected) {
  bool writable = false;
  is_protected = false;
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info.dlpi_phdr[i];
    const uintptr_t start = info.dlpi_addr + segment.p_vaddr;
    if (at >= start && at - start < segment.p_memsz) {
      writable = writable || (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0);
      is_protected = is_protected || segment.p_type == PT_GNU_RELRO;
    }
  }
  return writable;
}

void rebind(const dl_phdr_info &info, const link_map &map) {
  const SymbolTable table = symbol_table(map);
  const ElfW(Rela) *first = nullptr;
  size_t bytes = 0;
  for (const ElfW(Dyn) *entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RELA) {
      first = pointer_of<ElfW(Rela)>(map, entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_RELASZ) {
      bytes = entry->d_un.d_val;
    }
  }
  for (const ElfW(Rela) *each = first; first != nullptr && each < first + bytes / sizeof(*first); ++each) {
    const uint64_t type = ELF64_R_TYPE(each->r_info);
    if (type != kInTable && type != kInData) {
      continue;
    }
    auto *slot = reinterpret_cast<ElfW(Addr) *>(map.l_addr + each->r_offset);
    const auto addend = static_cast<ElfW(Addr)>(type == kInData ? each->r_addend : 0);
    const char *name = table.strings + table.symbols[ELF64_R_SYM(each->r_info)].st_name;
    bool is_protected = false;
    if (!is_hooked(name) || !place_of(info, reinterpret_cast<uintptr_t>(slot), is_protected) ||
        !is_entry(reinterpret_cast<const void *>(__atomic_load_n(slot, __ATOMIC_RELAXED) - addend))) {
      continue;
    }
    if (const ElfW(Addr) variable = variable_for(map, table, name); variable != 0) {
      store(slot, variable + addend, is_protected);
    }
  }
}

// The files of the objects that have such variables. For further objects, and for longer file names, only the object's
// own references are bound.
struct Owners {
  static constexpr unsigned kMost = 8;
  static constexpr unsigned kLongest = 128;
  unsigned count;
  char files[kMost][kLongest];
};

int note_owner(dl_phdr_info *info, size_t, void *argument) {
  auto &owners = *static_cast<Owners *>(argument);
  const link_map map = map_of(*info);
  if (map.l_ld == nullptr || map.l_name == nullptr || !has_variables(map)) {
    return 0;
  }
  const char *file = base_name(map.l_name);
  unsigned length = 0;
  while (file[length] != '\0' && length < Owners::kLongest - 1) {
    owners.files[owners.count][length] = file[length];
    ++length;
  }
  owners.files[owners.count][length] = '\0';
  ++owners.count;
  return owners.count == Owners::kMost ? 1 : 0;
}

int rebind_object(dl_phdr_info *info, size_t, void *argument) {
  const auto &owners = *static_cast<const Owners *>(argument);
  const link_map map = map_of(*info);
  if (map.l_ld == nullptr) {
    return 0;
  }
  const SymbolTable table = symbol_table(map);
  if (table.strings == nullptr || table.symbols == nullptr) {
    return 0;
  }
  bool concerned = has_variables(map);
  for (unsigned i = 0; i < owners.count && !concerned; ++i) {
    concerned = needs(map, table, owners.files[i], false);
  }
  if (concerned) {
    rebind(*info, map);
  }
  return 0;
}

}  // namespace

void return_variables() {
  __atomic_store_n(&objects_may_be_new, 0, __ATOMIC_RELAXED);
  Owners owners;
  owners.count = 0;
  for_each_object(&note_owner, &owners);
  if (owners.count > 0) {
    for_each_object(&rebind_object, &owners);
  }
}

void variables_may_come(const char *file) {
  __atomic_store_n(&objects_may_be_new, 1, __ATOMIC_RELAXED);
  if (file != nullptr &&
      (starts_with(base_name(file), "libcuda.so") || starts_with(base_name(file), "libnvidia-ml.so"))) {
    return_variables();
    __atomic_store_n(&objects_may_be_new, 1, __ATOMIC_RELAXED);  // for the object that is loaded now
  }
}

bool may_have_new_variables() {
  return __atomic_load_n(&objects_may_be_new, __ATOMIC_RELAXED) != 0;
}

}  // namespace ration::preload

#include "events/loaded_modules.h"

#include <link.h>

#include <algorithm>
#include <utility>

#include "base/build_id.h"

namespace ration::events {
namespace {

std::string build_id_of(const dl_phdr_info &object) {
  std::string found;
  for (unsigned i = 0; i < object.dlpi_phnum && found.empty(); ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_NOTE) {
      found = build_id_in({reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr), segment.p_memsz});
    }
  }
  return found;
}

struct Asked {
  std::vector<LoadedModules::Module> modules;
  unsigned long long loaded, unloaded;  // counts of the previous query, then of this one
  bool changed = false, failed = false;
};

int take(dl_phdr_info *object, std::size_t /*size*/, void *argument) {
  auto &asked = *static_cast<Asked *>(argument);
  if (!asked.changed && asked.loaded == object->dlpi_adds && asked.unloaded == object->dlpi_subs) {
    return 1;  // nothing has changed
  }
  asked.changed = true;
  asked.loaded = object->dlpi_adds;
  asked.unloaded = object->dlpi_subs;
  std::uintptr_t start = UINTPTR_MAX;
  std::uintptr_t end = 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      start = std::min<std::uintptr_t>(start, object->dlpi_addr + segment.p_vaddr);
      end = std::max<std::uintptr_t>(end, object->dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
  }
  if (start < end) {
    try {
      asked.modules.push_back({start, end, object->dlpi_addr, object->dlpi_name, build_id_of(*object)});
    } catch (...) {  // out of memory; an exception must not leave the loader
      asked.failed = true;
      return 1;
    }
  }
  return 0;
}

}  // namespace

unsigned long long LoadedModules::unloaded_so_far() noexcept {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *object, std::size_t /*size*/, void *into) {
        *static_cast<unsigned long long *>(into) = object->dlpi_subs;
        return 1;
      },
      &count);
  return count;
}

bool LoadedModules::ask(const LoadedModules &before) {
  Asked asked{{}, before.loaded_, before.unloaded_};
  dl_iterate_phdr(&take, &asked);
  if (!asked.changed || asked.failed) {
    return false;
  }
  modules_ = std::move(asked.modules);
  std::sort(modules_.begin(), modules_.end(), [](const Module &a, const Module &b) { return a.start < b.start; });
  loaded_ = asked.loaded;
  unloaded_ = asked.unloaded;
  return true;
}

const LoadedModules::Module *LoadedModules::find(std::uintptr_t address) const {
  auto after = std::upper_bound(modules_.begin(), modules_.end(), address,
                                [](std::uintptr_t wanted, const Module &each) { return wanted < each.start; });
  return after != modules_.begin() && address < std::prev(after)->end ? &*std::prev(after) : nullptr;
}

}  // namespace ration::events

#include "loaded_objects.h"

#include <dlfcn.h>

#include "core_file.h"
#include "link_map.h"
#include "preload.h"

namespace ration::preload {

// Calls the next definition after this library: a sanitizer's own must not be called before the sanitizer has started.
int for_each_object(Visit visit, void *argument) {
  using Iterate = int (*)(Visit, void *);
  static Iterate iterate;  // racing threads store equal values
  Iterate found = __atomic_load_n(&iterate, __ATOMIC_ACQUIRE);
  if (found == nullptr) {
    found = reinterpret_cast<Iterate>(next_definition("dl_iterate_phdr"));
    __atomic_store_n(&iterate, found, __ATOMIC_RELEASE);
  }
  return found != nullptr ? found(visit, argument) : 0;
}

namespace {

uint64_t objects_ever_added() {
  uint64_t adds = 0;
  for_each_object(
      [](dl_phdr_info *info, size_t bytes, void *answer) {
        if (bytes >= offsetof(dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds)) {
          *static_cast<uint64_t *>(answer) = info->dlpi_adds;
        }
        return 1;
      },
      &adds);
  return adds;
}

struct Search {
  const char *prefix;
  unsigned skip;
  char path[kPathMax];
};

bool copy(const char *from, char *to, size_t room) {
  for (size_t at = 0; at < room; ++at) {
    to[at] = from[at];
    if (from[at] == '\0') {
      return true;
    }
  }
  return false;
}

int match(dl_phdr_info *info, size_t, void *argument) {
  auto &search = *static_cast<Search *>(argument);
  if (info->dlpi_name == nullptr || !starts_with(base_name(info->dlpi_name), search.prefix)) {
    return 0;
  }
  if (search.skip > 0) {
    --search.skip;
    return 0;
  }
  return copy(info->dlpi_name, search.path, sizeof(search.path)) ? 1 : 0;
}

// The handle is taken after the loader's lock was released. By then the object may be gone; then the next match counts.
void *search_by_file(const char *prefix) {
  Search search;
  search.prefix = prefix;
  for (unsigned passed = 0;; ++passed) {
    search.skip = passed;
    if (for_each_object(&match, &search) == 0) {
      return nullptr;
    }
    if (void *handle = real().dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD)) {
      return handle;
    }
  }
}

}  // namespace

void *loaded_library(Library &library) {
  void *handle = found_library(library);
  if (handle != nullptr) {
    return handle;
  }
  const uint64_t added = objects_ever_added();  // read before the search
  if (added != 0 && __atomic_load_n(&library.absent_at, __ATOMIC_RELAXED) == added + 1) {
    return nullptr;
  }
  handle = real().dlopen(library.name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    handle = search_by_file(library.file_prefix);
  }
  if (handle != nullptr) {
    __atomic_store_n(&library.handle, handle, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(&library.absent_at, added + 1, __ATOMIC_RELAXED);
  }
  return handle;
}

bool precedes(const link_map &map) {
  struct Order {
    const link_map *own;
    const link_map *other;
    bool own_seen;
  } order{own_map(), &map, false};
  if (order.own == nullptr) {
    return false;
  }
  return for_each_object(
             [](dl_phdr_info *info, size_t, void *argument) {
               auto &seen = *static_cast<Order *>(argument);
               const auto is = [&](const link_map *one) {
                 return info->dlpi_addr == one->l_addr && info->dlpi_name == one->l_name;
               };
               seen.own_seen = seen.own_seen || is(seen.own);
               return seen.own_seen && is(seen.other) ? 1 : 0;
             },
             &order) != 0;
}

}  // namespace ration::preload

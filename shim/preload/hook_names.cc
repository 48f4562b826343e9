#include "hook_names.h"

#include <stdint.h>

#include "base/name_hash.h"
#include "link_map.h"

namespace ration::preload {
namespace {

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) #symbol,
#define RATION_NVML_HOOK(symbol, parameters) #symbol,
constexpr const char *names[] = {
#include "hook_table.inc"
};
#undef RATION_HOOK
#undef RATION_NVML_HOOK
constexpr unsigned kNames = sizeof(names) / sizeof(names[0]);

// Size of an open-addressing hash table of which at most a quarter is used. An entry is 1 + the index of a name, or 0
// if free.
constexpr unsigned name_slots() {
  unsigned slots = 64;
  while (slots < 4 * kNames) {
    slots *= 2;
  }
  return slots;
}

struct NameTable {
  uint16_t entries[name_slots()];
};

constexpr NameTable table = [] {
  NameTable made{};
  for (unsigned at = 0; at < kNames; ++at) {
    unsigned slot = name_hash(names[at]) % name_slots();
    while (made.entries[slot] != 0) {
      slot = (slot + 1) % name_slots();
    }
    made.entries[slot] = static_cast<uint16_t>(at + 1);
  }
  return made;
}();

}  // namespace

bool is_hooked(const char *name) {
  for (unsigned slot = name_hash(name) % name_slots(); table.entries[slot] != 0; slot = (slot + 1) % name_slots()) {
    if (same(names[table.entries[slot] - 1], name)) {
      return true;
    }
  }
  return false;
}

}  // namespace ration::preload

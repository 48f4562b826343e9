#include "base/asked_names.h"

#include "base/name_hash.h"

namespace ration {
namespace {

constexpr unsigned kLongestName = 100;
static_assert(kLongestName < sizeof(RationName::text));

// The hashes of the catalogue's names. An unknown name is taken for a known one in one of six million cases.
constexpr uint32_t kHashes[] = {
#include "catalogue_names.inc"
};
constexpr unsigned kNames = sizeof(kHashes) / sizeof(kHashes[0]);

// The number of entries of a table with open addressing that is at most three quarters full. In it, 0 is a free entry.
constexpr unsigned slots() {
  unsigned slots = 64;
  while (3 * slots < 4 * kNames) {
    slots *= 2;
  }
  return slots;
}

struct HashTable {
  uint32_t hashes[slots()];
};

constexpr HashTable known = [] {
  HashTable made{};
  for (const uint32_t hash : kHashes) {
    unsigned slot = hash % slots();
    while (made.hashes[slot] != 0) {
      slot = (slot + 1) % slots();
    }
    made.hashes[slot] = hash;
  }
  return made;
}();

bool is_known(uint32_t hash) {
  for (unsigned slot = hash % slots(); known.hashes[slot] != 0; slot = (slot + 1) % slots()) {
    if (known.hashes[slot] == hash) {
      return true;
    }
  }
  return false;
}

constexpr bool is_capital(char letter) {
  return letter >= 'A' && letter <= 'Z';
}
constexpr bool is_of_a_name(char letter) {
  return is_capital(letter) || (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
}

bool begins_with(const char *text, const char *word) {
  for (; *word != '\0'; ++text, ++word) {
    if (*text != *word) {
      return false;
    }
  }
  return true;
}

// Takes a free entry for a hash. False: the hash is there already, or no entry is free.
bool is_new(RationNames &names, uint32_t hash) {
  constexpr unsigned kSeen = sizeof(names.seen) / sizeof(names.seen[0]);
  if (__atomic_load_n(&names.count, __ATOMIC_RELAXED) >= RATION_NAMES_COUNTED) {
    return false;
  }
  for (unsigned tried = 0, slot = hash % kSeen; tried < kSeen; ++tried, slot = (slot + 1) % kSeen) {
    uint32_t there = __atomic_load_n(&names.seen[slot], __ATOMIC_RELAXED);
    if (there == 0 &&
        __atomic_compare_exchange_n(&names.seen[slot], &there, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return true;
    }
    if (there == hash) {
      return false;
    }
  }
  return false;
}

void keep(RationName &name, const char *text) {
  for (unsigned at = 0; at + 1 < sizeof(name.text) && text[at] != '\0'; ++at) {
    name.text[at] = text[at];
  }
  __atomic_store_n(&name.is_written, 1, __ATOMIC_RELEASE);  // pairs with the acquire in name_at
}

}  // namespace

bool is_unknown_driver_name(const char *name) {
  if (name[0] != 'c' || name[1] != 'u' || !is_capital(name[2])) {
    return false;
  }
  uint32_t hash = kNoName;
  unsigned length = 0;
  for (; name[length] != '\0'; ++length) {
    if (length == kLongestName || !is_of_a_name(name[length])) {
      return false;
    }
    hash = with_letter(hash, name[length]);
  }
  return !is_known(hash);
}

bool may_take_memory(const char *name) {
  constexpr const char *kParts[] = {"Mem",   "Alloc", "Malloc", "Pool",   "Graph", "Capture",
                                    "Array", "Ctx",   "Heap",   "Import", "Map"};
  for (; *name != '\0'; ++name) {
    for (const char *part : kParts) {
      if (begins_with(name, part)) {
        return true;
      }
    }
  }
  return false;
}

bool note_name(RationNames &names, const char *text) {
  const uint32_t hash = name_hash(text);
  if (!is_new(names, hash != 0 ? hash : 1)) {
    return false;
  }
  __atomic_fetch_add(&names.count, 1, __ATOMIC_RELAXED);
  const bool of_memory = may_take_memory(text);
  if (of_memory) {
    __atomic_fetch_add(&names.of_memory, 1, __ATOMIC_RELAXED);
  } else if (__atomic_fetch_add(&names.others, 1, __ATOMIC_RELAXED) >= RATION_NAMES_KEPT / 2) {
    return true;  // the other half of the entries is for functions that may take memory
  }
  const uint32_t place = __atomic_fetch_add(&names.kept, 1, __ATOMIC_RELAXED);
  if (place < RATION_NAMES_KEPT) {
    keep(names.first[place], text);
  }
  return true;
}

const char *name_at(const RationNames &names, unsigned place) {
  const RationName &name = names.first[place];
  return __atomic_load_n(&name.is_written, __ATOMIC_ACQUIRE) != 0 ? name.text : nullptr;
}

}  // namespace ration

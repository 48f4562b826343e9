// The hash of a name: 32-bit FNV-1a. scripts/catalogue_names.py computes the same hash.
// Layer: base. Threads: any; constant.
#pragma once

#include <stdint.h>

namespace ration {

constexpr uint32_t kNoName = 2166136261U;  // the hash of the empty name
constexpr uint32_t with_letter(uint32_t hash, char letter) {
  return (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
}

constexpr uint32_t name_hash(const char *name) {
  uint32_t hash = kNoName;
  for (; *name != '\0'; ++name) {
    hash = with_letter(hash, *name);
  }
  return hash;
}

}  // namespace ration

// 64-bit FNV-1a, to distinguish pieces of text. It does not resist crafted collisions. Layer: config. Threads:
// constant.
#pragma once

#include <cstdint>
#include <string_view>

namespace ration::config {

constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t sum = 14695981039346656037ull;
  for (const char c : text) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return sum;
}

}  // namespace ration::config

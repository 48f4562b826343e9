#include "config/flag_marks.h"

#include <cstdint>

namespace ration::config {

namespace {

std::string mark_of(std::string_view key, std::string_view value) {
  std::uint64_t sum = 14695981039346656037ull;  // FNV-1a
  for (const char c : value) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  std::string mark(" ");
  mark += key;
  return mark + ":" + std::to_string(sum) + " ";
}

}  // namespace

std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value) {
  return std::string(marks) + mark_of(key, value);
}

bool is_marked(std::string_view marks, std::string_view key, std::string_view value) {
  return marks.find(mark_of(key, value)) != std::string_view::npos;
}

}  // namespace ration::config

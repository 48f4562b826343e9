#include "config/flag_marks.h"

#include <algorithm>
#include <cstdint>

namespace ration::config {

namespace {

std::string mark_of(std::string_view key, std::string_view value) {
  std::uint64_t sum = 14695981039346656037ull;  // FNV-1a
  for (const char c : value) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return std::string(key) + ":" + std::to_string(sum);
}

// Calls `visit` with each of the blank-separated marks.
template <typename Visit>
void each_mark(std::string_view marks, Visit visit) {
  while (!marks.empty()) {
    const std::size_t end = std::min(marks.find(' '), marks.size());
    visit(marks.substr(0, end));
    marks.remove_prefix(std::min(end + 1, marks.size()));
  }
}

}  // namespace

std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value) {
  std::string changed;
  each_mark(marks, [&](std::string_view mark) {
    if (mark.substr(0, mark.find(':')) != key) {
      changed += std::string(mark) + " ";
    }
  });
  return changed + mark_of(key, value);
}

bool is_marked(std::string_view marks, std::string_view key, std::string_view value) {
  bool found = false;
  const std::string wanted = mark_of(key, value);
  each_mark(marks, [&](std::string_view mark) { found = found || mark == wanted; });
  return found;
}

}  // namespace ration::config

#include "config/flag_marks.h"

#include "config/values/text_hash.h"

namespace ration::config {

namespace {

std::string mark_of(std::string_view key, std::string_view value) {
  std::string mark(" ");
  mark += key;
  return mark + ":" + std::to_string(hash_of(value)) + " ";
}

}  // namespace

std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value) {
  return std::string(marks) + mark_of(key, value);
}

bool is_marked(std::string_view marks, std::string_view key, std::string_view value) {
  return marks.find(mark_of(key, value)) != std::string_view::npos;
}

}  // namespace ration::config

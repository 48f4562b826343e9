#include "cli/launch/environment_block.h"

#include <algorithm>

namespace ration::cli {

namespace {

bool is_entry_of(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

EnvironmentBlock::EnvironmentBlock(const char *const *entries) {
  for (; *entries != nullptr; ++entries) {
    entries_.emplace_back(*entries);
  }
}

std::string EnvironmentBlock::value(std::string_view name) const {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const std::string &each) { return is_entry_of(each, name); });
  return entry == entries_.end() ? "" : entry->substr(name.size() + 1);
}

void EnvironmentBlock::set(std::string_view name, std::string_view value) {
  unset(name);
  std::string entry(name);
  entry += '=';
  entry += value;
  entries_.push_back(std::move(entry));
}

void EnvironmentBlock::unset(std::string_view name) {
  std::erase_if(entries_, [&](const std::string &entry) { return is_entry_of(entry, name); });
}

std::vector<const char *> EnvironmentBlock::pointers() const {
  std::vector<const char *> pointers;
  for (const std::string &entry : entries_) {
    pointers.push_back(entry.c_str());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace ration::cli

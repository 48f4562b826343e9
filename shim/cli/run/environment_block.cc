#include "cli/run/environment_block.h"

#include <algorithm>

namespace ration::cli {

namespace {

bool is_entry_of(const std::string &entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' &&
         std::string_view(entry).substr(0, name.size()) == name;
}

}  // namespace

EnvironmentBlock::EnvironmentBlock(const char *const *entries) {
  for (; *entries != nullptr; ++entries) {
    entries_.emplace_back(*entries);
  }
}

const char *EnvironmentBlock::find(std::string_view name) const {
  for (const std::string &entry : entries_) {
    if (is_entry_of(entry, name)) {
      return entry.c_str() + name.size() + 1;
    }
  }
  return nullptr;
}

void EnvironmentBlock::set(std::string_view name, std::string_view value) {
  unset(name);
  std::string entry(name);
  entry += '=';
  entry += value;
  entries_.push_back(std::move(entry));
}

void EnvironmentBlock::unset(std::string_view name) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [&](const std::string &entry) { return is_entry_of(entry, name); }),
                 entries_.end());
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

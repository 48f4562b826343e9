// Numbers the names that occur repeatedly in a log. Layer: logs. Threads: none of its own.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace ration::logs {

class Names {
 public:
  std::uint32_t number(const std::string &name) {
    const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(all_.size()));
    if (is_new) {
      all_.push_back(name);
    }
    return entry->second;
  }
  const std::vector<std::string> &all() const { return all_; }

 private:
  std::vector<std::string> all_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace ration::logs

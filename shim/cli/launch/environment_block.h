// The environment for a command to be started: NAME=value entries, in order. Layer: cli. Threads: a value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ration::cli {

class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const char *const *entries);
  explicit EnvironmentBlock(std::vector<std::string> entries) : entries_(std::move(entries)) {}

  // Empty if `name` is not set. If it is set twice, the first entry counts, as in getenv(3).
  [[nodiscard]] std::string value(std::string_view name) const;
  // Replaces all entries with that name by a single one.
  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);

  // NULL-terminated, valid until the next change.
  [[nodiscard]] std::vector<const char *> pointers() const;

 private:
  std::vector<std::string> entries_;
};

}  // namespace ration::cli

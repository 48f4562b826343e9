// What is known about the variables of a shell's text: those that it assigns without exporting them, its arguments and
// its path. Layer: cli. Threads: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/launch/environment_block.h"

namespace ration::cli {

class ShellVariables {
 public:
  using Words = std::vector<std::string>;

  // `script`: $0; empty if it is not known.
  ShellVariables(std::optional<Words> arguments, std::string script)
      : arguments_(std::move(arguments)), script_(std::move(script)) {}

  // NAME=VALUE.
  void add(const std::string &word) { assigned_.push_back(word); }
  void erase(std::string_view name);
  // The last NAME=VALUE; nullptr if there is none.
  [[nodiscard]] const std::string *find(std::string_view name) const;

  // Drops the first arguments. Returns false if there are fewer, or if `count` is no number.
  bool shift(std::string_view count);
  // Returns the old ones. nullopt: not known.
  std::optional<Words> set_arguments(std::optional<Words> arguments) {
    return std::exchange(arguments_, std::move(arguments));
  }

  // LD_PRELOAD=$P, with what P has been set to in place of $P if that extends LD_PRELOAD; otherwise `word` itself.
  [[nodiscard]] std::string extended_by(const std::string &word) const;
  // The words to which the shell expands `word`; `word` itself if part of the result is unknown. `in_order`: the text
  // has run in its order, so a variable has the last value that was assigned to it.
  [[nodiscard]] Words expanded(const std::string &word, const EnvironmentBlock &environment, bool in_order) const;

 private:
  using Known = std::optional<std::string>;

  [[nodiscard]] Known value(const std::string &name, const EnvironmentBlock &environment, bool in_order) const;
  [[nodiscard]] Known text(std::string_view written, const EnvironmentBlock &environment, bool in_order) const;
  [[nodiscard]] Known folder_of_script(std::string_view written) const;

  std::optional<Words> arguments_;
  std::string script_;
  Words assigned_;
};

}  // namespace ration::cli

// The help of the command and of its verbs. Layer: cli. Threads: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ration::cli {

class HelpFormatter : public CLI::FormatterBase {
 public:
  // `arguments`: what follows the options on the usage line; empty: the positional arguments. `first`: the options that
  // --help shows, where --help-all has others; none: all.
  explicit HelpFormatter(std::string arguments = {}, std::vector<std::string> first = {})
      : arguments_(std::move(arguments)), first_(std::move(first)) {}
  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  [[nodiscard]] std::string options_of(const CLI::App &app, bool all) const;

  std::string arguments_;
  std::vector<std::string> first_;
};

// The end of a help text: paragraphs are filled, and lists (lines that begin with two blanks) set in two columns, which
// two blanks or more divide. In a paragraph a line break counts as a blank.
std::string filled_footer(const std::string &footer);

}  // namespace ration::cli

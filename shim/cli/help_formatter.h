// The help of the command and of its verbs, at most 80 columns wide. Layer: cli. Threads: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

namespace ration::cli {

inline constexpr std::size_t kHelpWidth = 80;  // also on a wider terminal: longer lines are hard to read

class HelpFormatter : public CLI::FormatterBase {
 public:
  // `arguments`: what follows the options on the usage line; empty: the positional arguments.
  explicit HelpFormatter(std::string arguments = {}) : arguments_(std::move(arguments)) {}
  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::string arguments_;
};

// The end of a help text: paragraphs are filled, and lists (lines that begin with two blanks) set in two columns, which
// two blanks or more divide. In a paragraph a line break counts as a blank.
std::string filled_footer(const std::string &footer);

}  // namespace ration::cli

// The help texts of `ration` and of its verbs. Layer: cli. Threads: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ration::cli {

class HelpFormatter : public CLI::FormatterBase {
 public:
  // `arguments`: the text after the options on the usage line; empty: the names of the positional arguments. `first`:
  // the only options that --help shows, whereas --help-all shows all; empty: both show all.
  explicit HelpFormatter(std::string arguments = {}, std::vector<std::string> first = {})
      : arguments_(std::move(arguments)), first_(std::move(first)) {}
  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  [[nodiscard]] std::string options_of(const CLI::App &app, bool all) const;

  std::string arguments_;
  std::vector<std::string> first_;
};

// Formats the end of a help text. Refills paragraphs, so a line break inside a paragraph counts as a blank. Lines that
// begin with two blanks form a two-column list, with two or more blanks between the columns.
std::string filled_footer(const std::string &footer);

}  // namespace ration::cli

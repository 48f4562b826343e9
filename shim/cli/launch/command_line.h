// Splits the line of `ration run`, or of a verb that runs commands as it does, into its own options and the command;
// options after the command are the command's.
// Layer: cli.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ration::cli {

struct SplitLine {
  std::vector<std::string> own;  // --NAME=VALUE or --NAME, for the option parser
  std::vector<std::string> command;
};

// Options that a verb which runs commands has beside those of `ration run`.
struct VerbFlags {
  std::vector<std::string_view> with_value;
  std::vector<std::string_view> alone;
  std::string_view verb = "run";
};

// Those of `ration run` itself.
VerbFlags flags_of_run();

// `arguments`: those after the verb. Otherwise one sentence that names the wrong option and what was likely meant.
std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments, const VerbFlags &more = {});

}  // namespace ration::cli

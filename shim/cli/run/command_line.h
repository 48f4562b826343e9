// Splits a `ration run` line into its own options and the command; options after the command are the command's.
// Layer: cli.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace ration::cli {

struct SplitLine {
  std::vector<std::string> own;  // --NAME=VALUE or --NAME, for the option parser
  std::vector<std::string> command;
};

// `arguments`: those after "run". Otherwise one sentence that names the wrong option and what was likely meant.
std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments);

}  // namespace ration::cli

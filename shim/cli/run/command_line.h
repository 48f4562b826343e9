// Where the options of `ration run` end and the command begins: what follows the command is the command's. Layer: cli.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace ration::cli {

struct SplitLine {
  std::vector<std::string> own;  // --NAME=VALUE or --NAME, for the option parser
  std::vector<std::string> command;
};

// `arguments` behind "run"; else one sentence that names the option that is wrong and what was likely meant.
std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments);

}  // namespace ration::cli

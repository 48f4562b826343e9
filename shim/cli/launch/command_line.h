// Splits the arguments of `ration run`, or of a verb that runs commands in the same way, into our own options and the
// command. Options after the command's name belong to the command.
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

// The options that a verb that runs commands has in addition to those of `ration run`.
struct VerbFlags {
  std::vector<std::string_view> with_value;
  std::vector<std::string_view> alone;
  std::string_view verb = "run";
};

// The options of `ration run` itself.
VerbFlags flags_of_run();

// `arguments`: the words after the verb. On error, one sentence names the wrong option and what was probably meant.
std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments, const VerbFlags &more = {});

}  // namespace ration::cli

// The output of `ration --describe`: the command's verbs and options as JSON. write_manual.py turns it into manual
// pages and shell completions. Layer: cli.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
class Option;
}  // namespace CLI

namespace ration::cli {

// Where the command begins in a verb's arguments, if the verb takes a command.
enum class CommandBegins { kNowhere, kAtFirstWord, kBehindDashes };

std::string description_of(const CLI::App &app, const std::function<CommandBegins(const std::string &verb)> &begins);

// "-o", "--output".
std::vector<std::string> dashed_names(const CLI::Option &option);
// True if the option takes any number of values.
bool repeats(const CLI::Option &option);

}  // namespace ration::cli

// What `ration --describe` prints: the command's verbs and options as JSON, from which write_manual.py makes the manual
// pages and the completions of shells. Layer: cli.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
class Option;
}  // namespace CLI

namespace ration::cli {

// `runs_command`: whether the verb of that name takes a command, which begins at the first word that is no option.
std::string description_of(const CLI::App &app, const std::function<bool(const std::string &verb)> &runs_command);

// "-o", "--output".
std::vector<std::string> dashed_names(const CLI::Option &option);
// Whether it takes any number of values.
bool repeats(const CLI::Option &option);

}  // namespace ration::cli

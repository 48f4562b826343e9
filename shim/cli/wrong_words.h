// One sentence about a command line that could not be parsed. Layer: cli. Threads: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ration::cli {

// Names the error and, if there is one, a similar word that was probably meant. `words`: as given, the verb first.
std::string wrong_words(const CLI::App &app, const std::vector<std::string> &words, const CLI::ParseError &error);

// The sentence for a verb that does not exist.
std::string unknown_verb(const CLI::App &app, const std::string &word);

}  // namespace ration::cli

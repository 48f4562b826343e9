// What the words behind `ration` ask for. Read with CLI11, which only this part includes: it is dear to compile.
// Layer: cli.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/verbs.h"

namespace ration::cli {

using Request = std::variant<RunRequest, EnvRequest, ConfigRequest, PsRequest, TopRequest, DoctorRequest>;

// Else the exit status: a help or the version was asked for and has been printed, or what is wrong has been said.
std::variant<Request, int> read_words(const std::vector<std::string> &words);

// One sentence on stderr; the exit status that goes with it.
int complain(std::string line);

}  // namespace ration::cli

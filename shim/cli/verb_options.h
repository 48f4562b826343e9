// Parses the arguments of `ration`. Only verb_options.cc and manual/description.cc include CLI11, which is
// slow to compile. Layer: cli.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/base/verbs.h"

namespace ration::cli {

using Request = std::variant<RunRequest, SetRequest, EnvRequest, ProbeRequest, PsRequest, TopRequest, DoctorRequest,
                             CheckRequest, ReportRequest, ConvertRequest, DiffRequest, ReplayRequest, FindMinRequest,
                             FindFaultsRequest, CdiRequest>;

// Returns the parsed request, or the exit status if a help text, the version or an error was printed.
std::variant<Request, int> parse_arguments(std::vector<std::string> words, const char *version);

}  // namespace ration::cli

// The `ration` command. Layer: cli. Data go to stdout, messages to stderr.
#include <algorithm>
#include <exception>
#include <string>
#include <variant>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/verb_options.h"
#include "cli/verbs.h"

int main(int argc, char **argv) {
  using namespace ration::cli;
  try {
    const auto parsed = parse_arguments({argv + 1, argv + std::max(argc, 1)});
    if (const int *status = std::get_if<int>(&parsed)) {
      return *status != 0 || flush_stdout() ? *status : kOurError;
    }
    return std::visit([](const auto &request) { return run_verb(request); }, std::get<Request>(parsed));
  } catch (const std::exception &error) {  // an error of ours, such as no memory; never the command's
    return usage_error(error.what());
  }
}

// The `ration` command. Layer: cli. Data on stdout, talk on stderr.
#include <algorithm>
#include <exception>
#include <string>
#include <variant>

#include "cli/verb_options.h"
#include "cli/verbs.h"

namespace {

using namespace ration::cli;

struct Act {
  int operator()(const RunRequest &request) const { return run(request); }
  int operator()(const EnvRequest &request) const { return env(request); }
  int operator()(const ConfigRequest &request) const { return config_files(request); }
  int operator()(const PsRequest &request) const { return ps(request); }
  int operator()(const TopRequest &request) const { return top(request); }
  int operator()(const DoctorRequest &request) const { return doctor(request); }
};

}  // namespace

int main(int argc, char **argv) {
  try {
    const auto asked = read_words({argv + 1, argv + std::max(argc, 1)});
    if (const int *status = std::get_if<int>(&asked)) {
      return *status;
    }
    return std::visit(Act(), std::get<Request>(asked));
  } catch (const std::exception &error) {  // no memory, no output: nothing of the command's
    return complain(error.what());
  }
}

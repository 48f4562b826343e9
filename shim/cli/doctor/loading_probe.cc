#include "cli/doctor/loading_probe.h"

#include <dlfcn.h>

#include <iostream>
#include <sstream>

#include "cli/driver_probe.h"
#include "cli/exit_status.h"
#include "cli/run/run_preparation.h"

namespace ration::cli::doctor {

namespace {

constexpr const char *kLoaded = "loaded";

}  // namespace

std::vector<std::string> errors_of_loading(const EnvironmentBlock &environment) {
  const Library library = expected_library();
  std::istringstream lines(ask_without_library(environment, "--answer-loading"));
  std::vector<std::string> errors;
  for (const std::string &path : {library.core, library.preload}) {
    std::string line;
    if (!std::getline(lines, line)) {
      errors.push_back(path + ": the process that loads it crashes, or hangs");
      break;
    }
    if (line != kLoaded) {
      errors.push_back(line);
    }
  }
  return errors;
}

int answer_loading() {
  const Library library = expected_library();
  for (const std::string &path : {library.core, library.preload}) {
    const bool is_loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
    const char *error = is_loaded ? nullptr : dlerror();
    std::cout << (is_loaded ? kLoaded : error != nullptr ? error : path) << std::endl;
  }
  return std::cout ? 0 : kOurError;
}

}  // namespace ration::cli::doctor

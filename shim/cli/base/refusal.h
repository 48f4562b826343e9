// What ends a verb that starts programs before it has started one. Layer: cli.
#pragma once

#include <string>

namespace ration::cli {

// Thrown where nothing may be started: an error of our own, a wrong setting, a command that cannot run.
struct Refusal {
  int exit_status;
  std::string line;  // empty: already logged
};

}  // namespace ration::cli

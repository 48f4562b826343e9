// The exception with which a verb that starts programs ends before it has started one. Layer: cli.
#pragma once

#include <string>

namespace ration::cli {

// Thrown if nothing may be started: an error of ours, a wrong setting, or a command that cannot run.
struct Refusal {
  int exit_status;
  std::string line;  // empty: already logged
};

}  // namespace ration::cli

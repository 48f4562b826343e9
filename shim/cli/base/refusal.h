// The exception that ends a verb before it has started a program. Layer: cli.
#pragma once

#include <string>

namespace ration::cli {

// Thrown if nothing may be started, because of our own error, a wrong setting, or a command that cannot run.
struct Refusal {
  int exit_status;
  std::string line;  // empty: already logged
};

}  // namespace ration::cli

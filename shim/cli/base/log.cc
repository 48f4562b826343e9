#include "cli/base/log.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "config/values/quotes.h"
#include "events/diagnostics.h"

namespace ration::cli {

void log_line(std::string_view line) {
  events::say(line);
}

void log_error(std::string_view line) {
  log_line(std::string(line) + config::likely_cause(line));
}

int usage_error(std::string_view line, int status) {
  log_error(line);  // one line, where CLI11 splits a message into several
  return status;
}

bool flush_stdout() {
  errno = 0;
  if (std::cout.flush()) {
    return true;
  }
  log_line(std::string("cannot write to standard output") +
           (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  return false;
}

}  // namespace ration::cli

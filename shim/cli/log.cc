#include "cli/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "base/quiet_write.h"
#include "base/visible.h"
#include "config/values/quotes.h"

namespace ration::cli {

void log_line(std::string_view line) {
  // One write, so that lines of several processes on one terminal do not mix.
  const std::string text = "ration: " + visible(line) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write_quietly(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) {
      return;  // a lost message must not change an exit status
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void log_error(std::string_view line) {
  log_line(std::string(line) + config::likely_cause(line));
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

#include "cli/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "base/quiet_write.h"
#include "base/visible.h"
#include "config/settings.h"
#include "config/settings_sources.h"
#include "config/values/quotes.h"
#include "events/diagnostics.h"

namespace ration::cli {

namespace {

std::string in_colour(const std::string &word, const std::string &code) {
  return wants_colour() ? "\033[1;" + code + "m" + word + "\033[m" : word;
}

void put(const std::string &line) {
  const std::string whole = line + "\n";
  write_quietly(STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace

bool wants_colour() {
  const std::string terminal = config::first_of("TERM", config::process_environment());
  return config::first_of("NO_COLOR", config::process_environment()).empty() && !terminal.empty() && terminal != "dumb";
}

void log_line(std::string_view line) {
  events::say(line);
}

// On a terminal the remedy gets its own line, and the word that introduces each line is coloured.
void log_error(std::string_view line) {
  const bool has_cause = line.find("; likely cause: ") != std::string_view::npos;
  const std::string text = std::string(line) + (has_cause ? "" : config::likely_cause(line));
  if (isatty(STDERR_FILENO) != 1) {
    log_line(text);
    return;
  }
  const std::size_t end = text.find("; ");
  put(in_colour("ration:", "31") + " " + visible(text.substr(0, end)));
  if (end != std::string::npos) {
    put("ration: " + in_colour("hint:", "36") + " " + visible(text.substr(end + 2)));
  }
}

int usage_error(std::string_view line, int status) {
  log_error(line);  // as one line; CLI11 splits a message into several
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

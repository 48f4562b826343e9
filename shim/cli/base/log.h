// Messages of `ration` for people: lines on stderr that begin with its name. Layer: cli. Threads: any.
#pragma once

#include <string_view>

namespace ration::cli {

void log_line(std::string_view line);
// Logs a line that rejects the user's input. Adds the likely cause if characters in the line point to one.
void log_error(std::string_view line);
// Logs the line as log_error() does, and returns `status`.
int usage_error(std::string_view line, int status);

// True if NO_COLOR (no-color.org) and TERM allow colours on a terminal.
bool wants_colour();

// Flushes stdout. If the output cannot be written, logs an error and returns false.
bool flush_stdout();

}  // namespace ration::cli

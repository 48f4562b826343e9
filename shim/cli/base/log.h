// Messages of `ration` for people: lines on stderr that begin with its name. Layer: cli. Threads: any.
#pragma once

#include <string_view>

namespace ration::cli {

void log_line(std::string_view line);
// Logs a line that rejects the user's input. Adds the likely cause if the characters of the line show one.
void log_error(std::string_view line);
// Logs the line as log_error() does, and returns `status`.
int usage_error(std::string_view line, int status);

// True if NO_COLOR (no-color.org) and TERM allow colours on a terminal.
bool wants_colour();

// Logs an error and returns false if the output to stdout could not be written.
bool flush_stdout();

}  // namespace ration::cli

// Messages of `ration` for people: lines on stderr that begin with its name. Layer: cli. Threads: any.
#pragma once

#include <string_view>

namespace ration::cli {

void log_line(std::string_view line);
// Logs a line that refuses something the user wrote, and adds the likely cause if its characters show one.
void log_error(std::string_view line);
// Logs the line as log_error() does, and returns `status`.
int usage_error(std::string_view line, int status);

// True if a terminal should show colours, as NO_COLOR (no-color.org) and TERM say.
bool wants_colour();

// False if what was printed to stdout could not be written; that is logged.
bool flush_stdout();

}  // namespace ration::cli

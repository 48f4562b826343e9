// Messages of `ration` for people: lines on stderr that begin with its name. Layer: cli. Threads: any.
#pragma once

#include <string_view>

namespace ration::cli {

void log_line(std::string_view line);
// For a line that refuses what was written: with the likely cause, where characters in it show one.
void log_error(std::string_view line);
// The same; returns the exit status for it.
int usage_error(std::string_view line, int status);

// Whether a terminal shall show colours: by NO_COLOR (no-color.org) and TERM.
bool wants_colour();

// False: what was printed to stdout could not be written, which is logged.
bool flush_stdout();

}  // namespace ration::cli

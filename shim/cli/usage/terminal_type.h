// Queries the type of stdout's terminal (TERM). Layer: cli. Threads: one, before a Screen is opened.
// Separate from screen.h because <term.h> defines macros with names such as `lines` and `columns`.
#pragma once

namespace ration::cli {

// False if the type is unknown, or if a terminal of this type, such as `dumb`, cannot move its cursor. Changes nothing.
bool terminal_has_cursor();

}  // namespace ration::cli

// What the type of stdout's terminal (TERM) can do. Layer: cli. Threads: one, before the terminal is taken over.
// Apart from screen.h because <term.h> makes macros of names such as `lines` and `columns`.
#pragma once

namespace ration::cli {

// False where the type is not known, or is one such as `dumb` that has no places to write to. Changes nothing.
bool terminal_has_places();

}  // namespace ration::cli

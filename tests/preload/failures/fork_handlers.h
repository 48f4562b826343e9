// The number of fork handlers registered in this process. Defined in fork_handlers.cc, or in no_fork_handlers.cc if a
// sanitizer's runtime registers handlers before the program starts.
#pragma once

int fork_handlers();

// The number of fork handlers registered in this process: fork_handlers.cc, or no_fork_handlers.cc where a sanitizer's
// runtime registers some before the program starts.
#pragma once

int fork_handlers();

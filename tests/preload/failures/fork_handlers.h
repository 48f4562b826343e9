// How many fork handlers anybody in this process has registered: fork_handlers.cc, or no_fork_handlers.cc where a
// sanitizer's runtime registers some before the program can do anything.
#pragma once

int fork_handlers();

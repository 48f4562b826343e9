// The environment variables that the process was started with. They are used for settings that are absent at the first
// call, because some programs empty their environment in place before they use CUDA.
// Layer: config. Threads: values.
// Design: design/first-use.md#variables-of-the-start
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

// The entries of `text` ("NAME=value", each ended by a NUL byte) that are settings or say where settings files are. A
// program may have overwritten any part of `text` (setproctitle), so everything else is skipped.
std::vector<std::string> entries_of_settings(std::string_view text);

// The text of this process's environment where the kernel wrote it at the start of the program: above the first
// thread's stack, between the program's arguments and its path. Empty if that place cannot be determined.
std::string_view text_at_start() noexcept;

// This process's environment at its start, as the kernel keeps it (proc(5)), or as found in memory if the kernel does
// not show it, for example after a change of user. Empty in a program that has more rights than its user, because such
// a program removes its user's variables on purpose.
std::vector<std::string> variables_at_start();

// The entries of `now`, plus those of `at_start` whose name is not in `now`. NULL-terminated; valid while both exist.
std::vector<const char *> with_absent_ones(const char *const *now, const std::vector<std::string> &at_start);

}  // namespace ration::config

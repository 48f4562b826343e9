// The variables that the process was started with, for settings that are merely absent at the first call: programs
// empty their environment in place before they use CUDA.
// Layer: config. Threads: values.
// Design: design/first-use.md#variables-of-the-start
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

// The entries of `text` ("NAME=value", each ended by a NUL byte) that settings or the places of their files come from.
// A program may have overwritten any part of `text` (setproctitle), so everything else is passed over.
std::vector<std::string> entries_of_settings(std::string_view text);

// The text of this process's variables where the kernel wrote it when the program was started: between the program's
// arguments and its path, above the first thread's stack. Empty where that cannot be told.
std::string_view text_at_start() noexcept;

// Of this process, as the kernel keeps them (proc(5)); where it does not tell, as after a change of the user, as they
// lie in memory. Empty in a program that has more rights than its user: such a program removes the variables of that
// user for a reason.
std::vector<std::string> variables_at_start();

// The entries of `now`, and those of `at_start` whose name is not in `now`. NULL-terminated; valid as long as both are.
std::vector<const char *> with_absent_ones(const char *const *now, const std::vector<std::string> &at_start);

}  // namespace ration::config

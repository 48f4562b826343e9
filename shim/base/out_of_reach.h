// Moves a descriptor to a number that no file of the program will get by chance. Layer: base. Threads: any.
#pragma once

namespace ration {

// A program may close descriptors that it did not open, and then open files. The kernel gives a new file the lowest
// free number, which reaches the number chosen here only if the program has that many files open. The result refers to
// the same open file description, and `file` is closed. If all high numbers are taken, the result is `file`.
// Design: design/log.md#descriptor
int out_of_reach(int file) noexcept;

}  // namespace ration

// Gives a descriptor a number that no other file of the program gets by chance. Layer: base. Threads: any.
#pragma once

namespace ration {

// A program may close descriptors that it did not open, and open files. The kernel gives these the lowest number that
// is free, which is never one as high as this unless the program has as many files open. The same open file
// description; `file` is closed. Where all such numbers are taken: `file`.
// Design: design/log.md#descriptor
int out_of_reach(int file) noexcept;

}  // namespace ration

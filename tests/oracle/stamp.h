// Marks in a block's memory, which differ from the marks of every other block. Layer: objects.h.
// Threads: those of the block.
#pragma once

#include "tests/oracle/objects.h"

namespace oracle {

// A value for a 32-bit memset of this block; it is accepted as the block's from now on.
std::uint32_t new_mark(Block &block);
// Writes a mark from the host at the beginning, at the end and in the middle of the block.
void stamp(Block &block);
// Queues a memset with a new mark, starting at the block's beginning.
CUresult stamp_in_order(Block &block, CUstream stream);
// True if the block's memory shows only the block's own marks, or has not been written yet.
bool intact(const Block &block);

}  // namespace oracle

// Marks in a block's memory, which differ from those of every other block. Layer: objects.h.
// Threads: those of the block.
#pragma once

#include "tests/oracle/objects.h"

namespace oracle {

// A value for a 32-bit memset of this block; it is accepted as the block's from now on.
std::uint32_t new_mark(Block &block);
// Writes a mark from the host, at the block's beginning, end and in between.
void stamp(Block &block);
// Queues a memset with a new mark, from the block's beginning.
CUresult stamp_in_order(Block &block, CUstream stream);
// Whether the block's memory shows only marks that are its own; true where it has not been written yet.
bool intact(const Block &block);

}  // namespace oracle

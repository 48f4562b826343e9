// Two processes that share physical memory by a file descriptor. Layer: none. Threads: before the first CUDA call.
#pragma once

// The parent shares memory with its child, and each reads what the other wrote. Returns the error, or "shared".
int share_memory();
int give_memory_away();

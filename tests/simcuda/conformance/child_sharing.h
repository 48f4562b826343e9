// Two processes that share physical memory by a file descriptor. Layer: none. Threads: before the first CUDA call.
#pragma once

// The parent gives memory to its child, each writes what the other one reads; says what went wrong, or "shared".
int share_memory();

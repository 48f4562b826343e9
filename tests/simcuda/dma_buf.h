// DMA-BUFs: descriptors by which other devices reach a range of device memory. While a DMA-BUF is open, its memory
// stays charged even if freed, because the driver keeps it; only stream-ordered memory returns to its pool.
// Layer: driver.h, memory_file.h. Threads: under Driver::mutex. Owns: a descriptor for each that is open.
#pragma once
#include <cstdint>

namespace simcuda {

struct Allocation;

// Keeps a freed block's memory for its open DMA-BUFs. Returns false if there are none.
bool keep_for_dma_bufs(std::uint64_t address, const Allocation &block);
// Gives back memory that was kept only for DMA-BUFs that have been closed since.
void forget_closed_dma_bufs();

}  // namespace simcuda

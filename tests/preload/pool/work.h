// Every kind of queued work that touches a block, by the driver call that queues it.
// Layer: site.h. Threads: any. The targets of an act must live until its stream has passed it.
#pragma once

#include <cstdint>
#include <span>

#include "site.h"

namespace preload::pool {

// The bytes that late work writes. No owner writes them, since the first byte that an owner writes is smaller, and they
// identify the writer.
inline constexpr unsigned char kLateFromHost = 0xc1, kLateFromDevice = 0xc2, kLateMemset = 0xc3, kLateKernel = 0xc4,
                               kLateHostFunction = 0xc5, kLateGraph = 0xc6;
const char *late_writer(std::uint32_t word);
constexpr std::uint32_t late_word(unsigned char byte) {
  return byte * 0x0101'0101u;
}

struct Act {
  const Site *at = nullptr;     // the site of the stream; current on the calling thread
  const Site *owner = nullptr;  // the site whose memory the block is
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  std::uint32_t bytes = 0;            // a multiple of 8
  std::uint32_t word = 0;             // what a writer writes
  const void *host_source = nullptr;  // full of `word`, pinned
  void *host_target = nullptr;        // where a reader puts the bytes, pinned
  CUstream capturing = nullptr;       // a stream of the site `at`, for an act that records a graph
  CUdeviceptr scratch = 0;            // at least as large, of the site `at`
};

struct Kind {
  const char *name;
  bool any_word;       // writes any given word; otherwise all bytes of the word must be equal
  bool reads;          // does not change the block, but reads its bytes
  bool between_sites;  // may run in a context other than the block's
  bool by_scratch;     // needs scratch
  unsigned char late_byte;
  CUresult (*submit)(const Act &act);
};

std::span<const Kind> kinds();

// Queues one operation that takes the stream's latency and touches no block.
CUresult submit_filler(CUstream stream, CUdeviceptr scratch);
// True if the stream still has work queued.
bool in_flight(CUstream stream);
CUresult fetch(void *target, CUdeviceptr address, std::uint32_t bytes, CUstream stream);
CUresult free_in_order(CUdeviceptr address, CUstream stream);

}  // namespace preload::pool

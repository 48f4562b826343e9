// Every kind of queued work that touches a block, by the driver call that queues it.
// Layer: site.h. Threads: any. The targets of an act must live until its stream has passed it.
#pragma once

#include <cstdint>
#include <span>

#include "site.h"

namespace preload::pool {

// The bytes of late work: no owner writes them, and they identify the writer. The first byte that an owner writes is
// smaller.
inline constexpr unsigned char kLateFromHost = 0xc1, kLateFromDevice = 0xc2, kLateMemset = 0xc3, kLateKernel = 0xc4,
                               kLateHostFunction = 0xc5, kLateGraph = 0xc6;
const char *late_writer(std::uint32_t word);
constexpr std::uint32_t late_word(unsigned char byte) {
  return byte * 0x0101'0101u;
}

struct Act {
  const Site *at = nullptr;     // whose stream it is; current on the calling thread
  const Site *owner = nullptr;  // whose memory the block is
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  std::uint32_t bytes = 0;            // a multiple of 8
  std::uint32_t word = 0;             // what a writer writes
  const void *host_source = nullptr;  // full of `word`, pinned
  void *host_target = nullptr;        // where a reader's bytes end up, pinned
  CUstream capturing = nullptr;       // a stream of the site `at`, for an act that records a graph
  CUdeviceptr scratch = 0;            // at least as large, of the site `at`
};

struct Kind {
  const char *name;
  bool any_word;       // writes whatever word it is given; else every byte of it must be the same
  bool reads;          // leaves the block alone and fetches its bytes
  bool between_sites;  // may run in a context other than the block's
  bool by_scratch;     // needs scratch
  unsigned char late_byte;
  CUresult (*submit)(const Act &act);
};

std::span<const Kind> kinds();

// One operation that takes the stream's latency and touches no block.
CUresult submit_filler(CUstream stream, CUdeviceptr scratch);
// Whether the stream still has work queued.
bool in_flight(CUstream stream);
CUresult fetch(void *target, CUdeviceptr address, std::uint32_t bytes, CUstream stream);
CUresult free_in_order(CUdeviceptr address, CUstream stream);

}  // namespace preload::pool

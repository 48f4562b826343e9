// The contexts in which the adversary works, and the streams and buffers that each thread has there.
// Layer: C++ over the driver API. Threads: a Site is constant once made; a Desk belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "verdict.h"

namespace preload::pool {

inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;
inline constexpr std::size_t kScratchBytes = 64 << 10;
inline constexpr std::size_t kFillerBytes = 512;

enum class StreamKind : unsigned char { kBlocking, kNonBlocking, kLegacy, kPerThread };
inline constexpr std::array kStreamKinds = {StreamKind::kBlocking, StreamKind::kNonBlocking, StreamKind::kLegacy,
                                            StreamKind::kPerThread};
const char *name_of(StreamKind kind);

struct Site {
  const char *name = "";
  CUcontext context = nullptr;
  CUdevice device = 0;
  bool per_thread_stream = true;  // a green context has none (cuda.h, cuStreamGetCtx_v2)
  CUfunction fill = nullptr;      // (address, words, value)
  CUdeviceptr late = 0;           // kMostBytes, read by late copies from the device
};

// One thread's streams and buffers at one site.
struct Desk {
  CUstream blocking = nullptr;
  CUstream non_blocking = nullptr;
  CUstream capturing = nullptr;  // used only to record graphs
  CUdeviceptr scratch = 0;       // kScratchBytes, plus kFillerBytes that are never read
  CUstream stream(StreamKind kind) const;
};

struct SiteChoice {
  bool second_context;  // created on device 0
  bool second_device;   // reaches device 0's memory as a peer
  bool green;           // a green context on device 0
};

// Creates the contexts, with the kernel loaded. The first is device 0's primary context. Empty: `verdict` says why.
std::vector<Site> make_sites(const SiteChoice &choice, Verdict &verdict);
bool make_desk(const Site &site, Desk *desk, Verdict &verdict);

}  // namespace preload::pool

// Keeps the ranges of addresses whose blocks are being ended in the driver. The driver may give a part of such a range
// to another thread before the end is logged; that thread waits, so that the log never shows two owners of one byte.
// Layer: policy/calls. Threads: any. Only for calls that are logged: without a log, nobody sees the order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/lock.h"

namespace ration::policy {

class EndingRanges {
 public:
  EndingRanges() = default;
  EndingRanges(const EndingRanges &) = delete;
  EndingRanges &operator=(const EndingRanges &) = delete;

  struct Range {
    EndingRanges *owner = nullptr;
    const void *ender = nullptr;  // the thread that ends the block; nullptr: this entry is free
    std::uint64_t address = 0, bytes = 0;
  };
  // Marks a range from before the driver's call until the end is logged. If very many ranges end at once, some of them
  // are not marked.
  class Ending {
   public:
    Ending(EndingRanges &ranges, std::uint64_t address, std::uint64_t bytes) noexcept;
    ~Ending();
    Ending(const Ending &) = delete;
    Ending &operator=(const Ending &) = delete;

   private:
    Range *range_;
  };

  // Waits until no other thread is ending a block in this range.
  void wait_for(std::uint64_t address, std::uint64_t bytes) noexcept;

 private:
  static void end(void *range) noexcept;
  bool is_ending(std::uint64_t address, std::uint64_t bytes) noexcept;

  RankedMutex mutex_{Rank::kEndingRanges};
  std::array<Range, 64> ranges_ GUARDED_BY(mutex_);
  std::atomic<unsigned> count_{0};
};

}  // namespace ration::policy

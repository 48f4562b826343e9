// Totals for each stack of a log: what it allocated, held at the peak, and never freed. Layer: logs. Threads: none of
// its own.
// Counts charged blocks only, so its sums equal those of `ration report`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "logs/history/live_blocks.h"
#include "logs/reader/record.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {

enum class Amount { kTotal, kPeak, kLeaked };  // all blocks; blocks live at their device's peak; blocks never freed

class StackTotals {
 public:
  struct Count {
    std::uint64_t blocks = 0, bytes = 0;
  };
  struct Place {  // who requested the memory, and how
    std::size_t device = 0;
    std::uint64_t stack = 0;  // 0: the log has no stack
    std::string api, kind;
    friend bool operator<(const Place &a, const Place &b) {
      return std::tie(a.device, a.stack, a.api, a.kind) < std::tie(b.device, b.stack, b.api, b.kind);
    }
  };
  struct Totals {
    Count total, live;
    const Count &of(Amount amount) const {
      return amount == Amount::kTotal ? total : amount == Amount::kPeak ? at_peak_ : live;
    }

   private:
    friend StackTotals;
    Count at_peak_;  // as of peak number `peak_`; if a later peak was reached, use `live` instead
    std::uint64_t peak_ = 0;
  };

  void add(const Record &record);
  // Call this after the last record.
  void finish();

  const std::map<Place, Totals> &places() const { return places_; }
  StackTable &stacks() { return stacks_; }

 private:
  struct Device {
    std::uint64_t live_bytes = 0, peak_bytes = 0;
    std::uint64_t peaks = 0;  // number of peaks so far
  };
  using Block = LiveBlocks<Totals *>::Block;
  // Call this before `totals` changes.
  void keep_peak(std::size_t device, Totals &totals);
  void begin(Block &block);
  void end(const Block &block);

  StackTable stacks_;
  LiveBlocks<Totals *> blocks_;
  std::map<Place, Totals> places_;
  std::map<std::size_t, Device> devices_;
};

}  // namespace ration::logs

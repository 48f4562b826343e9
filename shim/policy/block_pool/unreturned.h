// What the driver did not take back of granules: mappings, handles and addresses. It is asked again at each later
// change of granules, and at the end of each context, because what it refuses once it may take the next time. Layer:
// policy/block_pool. Threads: any; no driver call under the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>

#include "base/lock.h"
#include "ledger/ledger.h"
#include "pool/stitch/stitcher.h"

namespace ration::policy {

class Unreturned {
 public:
  explicit Unreturned(ledger::Ledger &ledger) : ledger_(ledger) {}

  // `charged`: of the device's account, which is released with it. Without memory of the host it stays charged, and
  // goes with the process.
  void add_mapping(int device, std::uint64_t address, std::uint64_t bytes, std::uint64_t charged) noexcept;
  void add_handle(int device, std::uint64_t handle, std::uint64_t charged) noexcept;
  // Gives a pool's addresses back, which fails while something is mapped there.
  void give_up(const pool::stitch::Layout &layout) noexcept;
  // Asks the driver once more, in the order in which it can answer.
  void retry() noexcept {
    if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      retry_all();
    }
  }

 private:
  enum class Kind { mapping, handle, addresses };
  struct Entry {
    Kind kind;
    int device;  // -1: nothing is charged
    std::uint64_t name;
    std::uint64_t bytes;
    std::uint64_t charged;
  };
  void add(const Entry &entry) noexcept;
  void retry_all() noexcept;
  static bool returns(const Entry &entry) noexcept;

  ledger::Ledger &ledger_;
  std::atomic<std::uint32_t> count_{0};
  RankedMutex mutex_{Rank::kGranules};
  std::list<Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy

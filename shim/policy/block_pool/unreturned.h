// Mappings, handles and addresses of granules that the driver did not take back. The driver is asked again at each
// later change of granules, and at the end of each context, because it may later accept what it refused before.
// Layer: policy/block_pool. Threads: any; no driver call under the lock.
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

  // `charged`: bytes of the device's account, which are released when the driver takes the memory back. If host memory
  // for this note has run out, the bytes stay charged until the process ends.
  void add_mapping(int device, std::uint64_t address, std::uint64_t bytes, std::uint64_t charged) noexcept;
  void add_handle(int device, std::uint64_t handle, std::uint64_t charged) noexcept;
  // Gives a pool's addresses back to the driver; tries again later if something is still mapped there.
  void give_up(const pool::stitch::Layout &layout) noexcept;
  // Asks the driver once more: first for mappings, then for handles, then for addresses, because each kind can depend
  // on the one before it.
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

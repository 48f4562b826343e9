// Memory whose stream-ordered free or unmapping was accepted but has not run yet: still charged, because the device
// still holds it. Layer: policy/physical. Threads: any; driver calls outside the lock. Owns: the events that it
// records.
//
// Not the deferred queue (contexts/deferred_queue.h): there one fence answers for all that was added before it. Here
// each free has an event of its own on its own stream, and no order between two streams is known.
#pragma once

#include <cstdint>
#include <list>

#include "base/clock.h"
#include "base/lock.h"
#include "driver/functions.h"
#include "ledger/ledger.h"
#include "policy/contexts/contexts.h"
#include "policy/contexts/fence_tracker.h"
#include "policy/physical/physical_memory.h"

namespace ration::policy {

class PendingFrees {
 public:
  using Pieces = PhysicalMemory::Lost;
  class PieceOwner {
   public:
    // Drops one hold on a piece; the last one ends it. Called without a lock.
    virtual void end_piece(const char *api, const PhysicalMemory::PieceRef &piece) = 0;

   protected:
    ~PieceOwner() = default;
  };
  PendingFrees(ledger::Ledger &ledger, PieceOwner &owner) : ledger_(ledger), owner_(owner) {}

  // Bytes, or holds on physical memory of one device.
  struct Pending {
    ContextRef context;
    int device = 0;
    std::uint64_t bytes = 0;
    Pieces pieces{};
    CUevent event = nullptr;  // add() records it
  };
  // They are released when `stream` has passed this point. If no event can be recorded there, they stay charged until
  // their context ends: never too low.
  void add(Pending pending, CUstream stream) noexcept;
  // Releases what has passed. True: something was released.
  bool poll(int device) { return release_passed(device, 0); }
  // The same, having waited for everything of the device, also for what another thread is waiting for: until the work
  // has finished, or kIdlePatienceNs, because that work may itself wait for this call to return.
  bool flush(int device) { return release_passed(device, now_ns() + kIdlePatienceNs); }
  // What would be released if everything of the device had passed; holds on physical memory in full.
  std::uint64_t bytes(int device);
  // The context has ended, and with it everything that was pending there.
  void drop(const ContextRef &context);

 private:
  void finish(const Pending &pending);
  bool release_passed(int device, std::uint64_t until_ns);  // until_ns: 0 to look only
  // True: its bytes were released.
  bool release_if_passed(const Pending &pending, std::uint64_t until_ns);
  static std::uint64_t bytes_of(const Pending &pending);

  ledger::Ledger &ledger_;
  PieceOwner &owner_;
  RankedMutex mutex_{Rank::kPendingFrees};
  std::list<Pending> pending_ GUARDED_BY(mutex_);  // a list: moved about without memory of the host
  // Threads that have entries of the device taken out, and the bytes of those.
  int releasing_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t releasing_bytes_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy

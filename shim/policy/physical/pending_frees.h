// Keeps memory whose stream-ordered free or unmapping was accepted but has not run yet. It stays charged, because the
// device still holds it. Layer: policy/physical. Threads: any; driver calls outside the lock. Owns: the events that it
// records.
//
// This does not use the deferred queue (contexts/deferred_queue.h), in which one fence covers everything that was added
// before it. Here, each free has its own event on its own stream, and the order between two streams is unknown.
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

  // Bytes of one device, or holds on the device's physical memory.
  struct Pending {
    ContextRef context;
    int device = 0;
    std::uint64_t bytes = 0;
    Pieces pieces{};
    ContextRef owner{};       // the memory ends with it at the latest; null: unknown
    CUevent event = nullptr;  // add() records it
  };
  // Releases `pending` once `stream` has passed this point. If no event can be recorded there, the memory stays charged
  // until its context ends, so the charge is never too low.
  void add(Pending pending, CUstream stream) noexcept;
  // Releases the entries that the device has passed. Returns true if something was released.
  bool poll(int device) { return release_passed(device, 0); }
  // Like poll(), but first waits for everything that is pending on the device, even if another thread is waiting for
  // it. Waits at most kIdlePatienceNs, because the work on the device may itself wait for this call to return.
  bool flush(int device) { return release_passed(device, now_ns() + kIdlePatienceNs); }
  // The bytes that would be released if everything pending on the device had passed. Physical memory on which there is
  // a hold counts in full.
  std::uint64_t bytes(int device);
  // To be called when a context has ended: everything that was pending in it has ended too.
  void drop(const ContextRef &context) noexcept;

 private:
  void finish(const Pending &pending);
  void finish(const std::list<Pending> &ended) noexcept;
  // Moves the entries into `pending_`, except those whose context has ended, because drop() may have run already. The
  // caller finishes what is left in `entries`.
  void enter(std::list<Pending> &entries) noexcept REQUIRES(mutex_);
  bool release_passed(int device, std::uint64_t until_ns);  // until_ns 0: does not wait
  // Returns true if it was released.
  bool release_if_passed(const Pending &pending, std::uint64_t until_ns);
  static std::uint64_t bytes_of(const Pending &pending);

  ledger::Ledger &ledger_;
  PieceOwner &owner_;
  RankedMutex mutex_{Rank::kPendingFrees};
  std::list<Pending> pending_ GUARDED_BY(mutex_);  // a list, so that moving entries needs no host memory
  // For each device: the number of threads that have taken entries out, and the bytes of these entries.
  int releasing_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t releasing_bytes_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy

// Blocks of the driver's own that the program has freed and the device may still be using: they go back to the driver
// once everything that was submitted before their free has finished (fences.h). The quarantine of mode async.
// Layer: policy. Threads: any; one looks or waits at a time, and no lock is held across a driver call.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>

#include "base/lock.h"
#include "base/reentrant_gate.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

struct DeferredBlock {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  ContextRef context;  // the program's that it was obtained in
};

class DeferredFrees {
 public:
  explicit DeferredFrees(FenceTracker &fences) : fences_(fences) {}

  // False: the host has no memory; nothing changed.
  bool add(const DeferredBlock &block) noexcept;
  // Whether so much is open that it is time to collect().
  bool is_due(std::uint64_t most_bytes) const;
  // Whether a freed block that the driver still has is around an address.
  bool covers(CUdeviceptr address);
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }

  struct Looked {
    CUresult error = CUDA_SUCCESS;  // of a driver call of ours; such a call cleans nothing
    bool capturing = false;         // what is not sealed cannot be while a capture runs
    bool ending = false;            // nor while a context is being destroyed
    bool waited = false;            // for the device
    bool busy = false;              // another thread is at it
  };
  // Moves what is clean by now to `clean`. Never waits for the device; with `patient` for another thread that looks.
  Looked collect(std::list<DeferredBlock> &clean, bool patient) noexcept;
  // The same, having waited for the oldest where nothing was clean.
  Looked wait(std::list<DeferredBlock> &clean) noexcept;
  // The same, until everything that was freed before the call is clean.
  Looked drain(std::list<DeferredBlock> &clean) noexcept;
  // A clean block that is about to go back; clean blocks that cannot yet, and are looked at again later.
  void given_back(const DeferredBlock &block) noexcept;
  void out_of_hands() { in_hands_.fetch_sub(1); }  // the driver has it
  void keep(std::list<DeferredBlock> &blocks) noexcept;
  // How many went back so far, and how many clean ones threads have in their hands.
  std::uint64_t returned() const { return returned_.load(); }
  std::uint64_t in_hands() const { return in_hands_.load(); }

 private:
  static constexpr std::uint64_t kBatchBlocks = 1024;
  struct Epoch {
    std::list<DeferredBlock> blocks;
    Fence moment;
  };
  void seal(Looked &looked);
  void wait_for(const Fence &moment, std::list<DeferredBlock> &clean, Looked &looked);
  void take_passed(std::list<DeferredBlock> &clean, Looked &looked);

  FenceTracker &fences_;
  ReentrantGate::Owner turn_{nullptr};
  std::list<Epoch> sealed_;  // by the turn alone; oldest first
  RankedMutex mutex_{Rank::kDeferredFrees};
  std::list<DeferredBlock> open_ GUARDED_BY(mutex_);
  std::map<CUdeviceptr, std::uint64_t> held_ GUARDED_BY(mutex_);  // address → bytes, until the driver gets it
  std::atomic<std::uint64_t> open_blocks_{0};
  std::atomic<std::uint64_t> open_bytes_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> blocks_{0};
  // Counted up before it is counted down: whoever sees nothing in hands sees what was returned.
  std::atomic<std::uint64_t> returned_{0};
  std::atomic<std::uint64_t> in_hands_{0};
};

}  // namespace ration::policy

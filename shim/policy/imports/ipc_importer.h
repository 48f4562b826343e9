// The blocks of other processes that this one has open. A block is either part of a slab, which the driver maps as a
// whole and once for all its blocks, or made of granules, which are mapped only for this block. Layer: policy/imports.
// Threads: any; one thread opens or closes at a time, and no lock is held across a driver call. Owns: the mappings and
// the leases (ledger/export_lease.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "base/function_ref.h"
#include "base/lock.h"
#include "base/reentrant_gate.h"
#include "ledger/export_lease.h"
#include "policy/contexts/contexts.h"
#include "policy/contexts/deferred_queue.h"
#include "policy/imports/imported_granules.h"

namespace ration::policy {

// Design: design/ipc.md#opened-blocks
class IpcImporter {
 public:
  IpcImporter(FenceTracker &fences, std::string state_folder)
      : closed_(fences), state_folder_(std::move(state_folder)) {}

  // `act` opens a driver handle. Returns INVALID_VALUE if the token's block cannot be opened.
  using Open = FunctionRef<CUresult(const CUipcMemHandle &, CUdeviceptr *)>;
  CUresult open(const ledger::ExportToken &token, const ContextRef &context, const Open &act, CUdeviceptr *address);
  // `handled`: whether the address is in one of these mappings. If it is not, the caller lets the driver close it.
  CUresult close(CUdeviceptr address, const ContextRef &context, bool &handled);

  struct Range {
    CUdeviceptr base;
    std::uint64_t bytes;
  };
  // covers(): whether an address is in a mapping. block_at(): the open block in which it is.
  bool covers(CUdeviceptr address);
  std::optional<Range> block_at(CUdeviceptr address);
  // The same functions as for a block of a pool (pool/pool.h), for open blocks. They return 0, false or nullopt if no
  // open block is there.
  std::uint64_t name(CUdeviceptr address, std::uint64_t fresh);
  bool mark(CUdeviceptr address, bool marked);
  std::optional<bool> is_marked(CUdeviceptr address);

  // The context that opened the block of granules at the address; nullptr if there is no such block.
  ContextRef opener_in_granules(CUdeviceptr address);
  // To be called when contexts of `peer` may access the memory of contexts of `device` from now on.
  void peer_may_access(int device, int peer) noexcept;

  // Whether anything was ever opened.
  bool in_use() const { return in_use_.load(); }
  // Forgets the imports of a context, which ended with the context.
  void finish_end(const ContextRef &context) noexcept;
  // Releases closed blocks that the device has finished using.
  void poll() noexcept { closed_.poll(); }

 private:
  struct Mapping {
    CUresult unmap() const;

    ContextRef context;
    std::uint64_t exporter = 0;
    std::array<unsigned char, 64> handle{};
    CUdeviceptr base = 0;
    std::uint64_t bytes = 0;
    unsigned users = 0;
    std::unique_ptr<ImportedGranules> granules;  // null: a slab
  };
  struct Opened : Deferred {
    std::unique_ptr<ledger::ExportLease> lease;  // destroyed last, as no owner may reuse a block that is mapped here
    std::shared_ptr<Mapping> in;
    ledger::ExportToken token;
    Range range{};
    unsigned count = 1;
    std::uint64_t name = 0;
    bool marked = false;
  };
  // Blocks that were closed. Until these entries are destroyed, granules stay mapped, and owners must not reuse the
  // blocks.
  class Closed final : public DeferredQueue {
   public:
    explicit Closed(FenceTracker &fences) : DeferredQueue(fences, Rank::kDeferredFrees) {}
    void add(Items &one) noexcept;
    void poll() noexcept {
      if (blocks() != 0 && FenceTracker::can_tell()) {
        collect(Sealing::worthwhile);
      }
    }
    // The wait is bounded, because work on the device may itself wait for this thread.
    // Design: design/ipc.md#closing
    void wait_briefly() noexcept;

   private:
    bool reclaim(Items &items, Cleaned &cleaned) override REQUIRES(mutex_);
  };
  template <class Look>
  auto in_block(CUdeviceptr address, const Look &look) -> std::optional<std::invoke_result_t<Look, Opened &>>;
  void allow_peers(const Mapping &mapping) noexcept;
  bool open_again(const ledger::ExportToken &token, const ContextRef &context, CUdeviceptr *address);
  CUresult map(const ledger::ExportToken &token, const ledger::ExportedBlock &block, const ContextRef &context,
               const Open &act, std::shared_ptr<Mapping> &mapping);
  void say_once(const std::string &problem);

  Closed closed_;
  const std::string state_folder_;
  ReentrantGate::Owner gate_{nullptr};
  std::atomic<bool> in_use_{false};
  std::atomic<bool> said_{false};      // the reason why a token cannot be used was logged
  RankedMutex mutex_{Rank::kImports};  // a thread that changes the guarded members is also inside gate_
  std::list<Opened> opened_ GUARDED_BY(mutex_);
  static constexpr int kPeers = 64;                             // bits
  std::atomic<std::uint64_t> peers_[ledger::kMaxDevices] = {};  // peers that may access a device's memory
};

}  // namespace ration::policy

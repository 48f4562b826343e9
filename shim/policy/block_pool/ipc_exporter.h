// Keeps track of the pool blocks that this process shares with others. A block that is freed while another process has
// it open is kept out of its pool until no process has it open (ledger/export_file.h). Such a block waits for other
// processes' locks, not for a fence, and then enters the quarantine.
// Layer: policy/block_pool. Threads: any; no system call under the lock, which is taken inside the quarantine's and
// before a pool's. Owns: the file, made at the first share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "ledger/export_file.h"
#include "policy/block_pool/part_server.h"
#include "policy/contexts/contexts.h"
#include "pool/shared_pool.h"

namespace ration::policy {

class ContextPool;

// Design: design/ipc.md#freed-blocks
class IpcExporter {
 public:
  explicit IpcExporter(std::string state_folder) : state_folder_(std::move(state_folder)) {}
  ~IpcExporter() { delete file_.load(std::memory_order_acquire); }
  IpcExporter(const IpcExporter &) = delete;
  IpcExporter &operator=(const IpcExporter &) = delete;

  enum class Shared {
    shared,
    not_a_block,  // the block is not live any more
    no_place,     // all records are in use
    no_file,      // there is no file, or no thread that sends a block's parts; `problem` says why
  };
  // Gives a live block its token, which stays the same for as long as the block lives. `in` says where the block lies;
  // for granules it holds only the kind and the size. Throws bad_alloc.
  Shared share(const ContextRef &owner, const pool::Block &block, const ledger::ExportedBlock &in,
               ledger::ExportToken &token, std::string &problem);
  // is_own(): whether the token belongs to this process. find_own(): where the token's block lies; returns false if the
  // block has ended or the token names no block.
  bool is_own(const ledger::ExportToken &token) const;
  bool find_own(const ledger::ExportToken &token, ledger::ExportedBlock &block);

  // A few parts of a block in granules, from number `first` on. Exists while the parts' descriptors are created; until
  // it ends, the block does not return to its pool. Converts to false if the token names no such block.
  using Part = pool::stitch::Stitcher::Parts::Part;
  class Exporting {
   public:
    Exporting(IpcExporter &exports, const ledger::ExportToken &token, std::uint64_t first);
    ~Exporting();
    Exporting(const Exporting &) = delete;
    Exporting &operator=(const Exporting &) = delete;
    explicit operator bool() const { return owner_ != nullptr; }
    const Context &owner() const { return *owner_; }
    const std::vector<Part> &parts() const { return parts_; }
    std::uint64_t total() const { return total_; }

   private:
    IpcExporter &exports_;
    const std::uint32_t record_;
    ContextRef owner_;
    std::vector<Part> parts_;
    std::uint64_t total_ = 0;
  };

  // True if a block that was just retired had been shared: the exporter then keeps it, and no process can open it any
  // more. Called under the quarantine's lock, so that no shared block enters the quarantine.
  bool keep(ContextPool &pool, pool::Address address, std::uint64_t bytes) noexcept;
  bool keeps_any() const { return kept_.load(std::memory_order_relaxed) != 0; }
  std::uint64_t kept_bytes(int device);

  struct Kept {
    ContextRef owner;  // null: its pool is gone
    pool::Address address = 0;
    std::uint64_t bytes = 0;
  };
  // Checks at most `most` of the kept blocks. Offers `take_back` each one that no other process has open any more;
  // `take_back` returns whether it took the block.
  void reconcile(std::size_t most, FunctionRef<bool(const Kept &)> take_back) noexcept;

  // Called when the pool's context has ended. The pool's shared blocks can then no longer be opened, and its kept
  // blocks are reclaimed.
  void forget(ContextPool &pool) noexcept;
  // Called at the end of the process.
  void leave() noexcept;
  void end_thread() noexcept { server_.end_thread(); }

 private:
  enum class State { free, live, kept, returning };
  struct Entry {
    State state = State::free;
    Kept block;
    ledger::ExportToken token;
    ledger::ExportedBlock in;
    std::vector<Part> parts;  // of a block in granules
    unsigned exporting = 0;
  };
  struct Candidate {
    std::uint32_t record;
    std::uint64_t generation;
  };
  ledger::ExportFile *file(std::string &problem);
  bool is_of(const Entry &entry, const ledger::ExportToken &token) REQUIRES(mutex_);
  bool free_record(std::uint32_t &record) REQUIRES(mutex_);
  std::vector<Candidate> candidates(std::size_t most);
  bool begin_return(const Candidate &candidate, Kept &block);
  void finish_return(std::uint32_t record, bool taken);

  const std::string state_folder_;
  std::atomic<ledger::ExportFile *> file_{nullptr};
  std::atomic<std::size_t> kept_{0};  // written under the lock
  RankedMutex mutex_{Rank::kExports};
  std::vector<Entry> entries_ GUARDED_BY(mutex_);                                   // by record
  std::unordered_map<pool::Address, std::uint32_t> by_address_ GUARDED_BY(mutex_);  // live blocks only
  std::size_t next_kept_ GUARDED_BY(mutex_) = 0;                                    // where the next reconcile() begins
  PartServer server_{*this};                                                        // declared last: ends first
};

}  // namespace ration::policy

// The blocks of this process's pools that it shares with others, and those that it freed while another process has them
// open: these are kept out of their pool until none has (ledger/export_file.h). They wait for other processes' locks,
// not for a fence, and then enter the quarantine. Layer: policy/block_pool. Threads: any; no system call under the
// lock, which is taken inside the quarantine's and before a pool's. Owns: the file, made at the first share.
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
    not_a_block,  // it is not live any more
    no_place,     // all records are in use
    no_file,      // or nothing that sends its parts; `problem` says why
  };
  // The token of a live block: the same one for as long as it lives. `in` is where it lies; of granules only the kind
  // and the bytes. Throws bad_alloc.
  Shared share(const ContextRef &owner, const pool::Block &block, const ledger::ExportedBlock &in,
               ledger::ExportToken &token, std::string &problem);
  // For a token of this process: the driver's handle. False: its block has ended, or it is no such token.
  bool is_own(const ledger::ExportToken &token) const;
  bool find_own(const ledger::ExportToken &token, ledger::ExportedBlock &block);

  // A few parts of a block in granules, from number `first` on, while their descriptors are made: until then the block
  // is not given back to its pool. False: the token names no such block.
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

  // Whether a block that was just retired was shared: then it can be opened no more, and is kept here. Called under the
  // quarantine's lock, so that no shared block enters the quarantine.
  bool keep(ContextPool &pool, pool::Address address, std::uint64_t bytes) noexcept;
  bool keeps_any() const { return kept_.load(std::memory_order_relaxed) != 0; }
  std::uint64_t kept_bytes(int device);

  struct Kept {
    ContextRef owner;  // null: its pool has gone
    pool::Address address = 0;
    std::uint64_t bytes = 0;
  };
  // Asks, for `most` of the kept blocks, whether another process still has them open; offers the others to `take_back`,
  // which returns whether it took the block.
  void reconcile(std::size_t most, FunctionRef<bool(const Kept &)> take_back) noexcept;

  // The pool's context has ended: what it shared can be opened no more, and what was kept of it is reclaimed.
  void forget(ContextPool &pool) noexcept;
  // At the end of the process.
  void leave() noexcept;
  void end_thread() noexcept { server_.end_thread(); }

 private:
  enum class State { free, live, kept, returning };
  struct Entry {
    State state = State::free;
    Kept block;
    ledger::ExportToken token;
    ledger::ExportedBlock in;
    std::vector<Part> parts;  // of granules
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
  std::unordered_map<pool::Address, std::uint32_t> by_address_ GUARDED_BY(mutex_);  // live ones
  std::size_t next_kept_ GUARDED_BY(mutex_) = 0;                                    // where the next reconcile() begins
  PartServer server_{*this};                                                        // ends first
};

}  // namespace ration::policy

// The right to use another process's block: while this object lives, the block is not reused, even if its owner frees
// it.
// Layer: ledger. Threads: any. Owns: a mapping that holds the lock (export_file.h); forked children do not inherit it.
#pragma once

#include <memory>
#include <string>

#include "ledger/export_layout.h"

namespace ration::ledger {

// Design: design/ipc.md#leases
class ExportLease {
 public:
  // Returns nullptr if the token names no usable block: the block was freed, its process is gone, or the token is
  // forged; `problem` is then empty. Also returns nullptr if this cannot be determined; `problem` then says why.
  static std::unique_ptr<ExportLease> take(const std::string &state_folder, const ExportToken &token,
                                           std::string &problem);
  ~ExportLease();
  ExportLease(const ExportLease &) = delete;
  ExportLease &operator=(const ExportLease &) = delete;

  const ExportedBlock &block() const { return block_; }
  // True until the owner frees the block.
  bool is_live() const;

 private:
  ExportLease() = default;
  bool lock(int descriptor, const ExportToken &token, std::string &problem);
  shared::ExportRecord &record() const;
  void enter();
  void leave();

  shared::ExportHeader *header_ = nullptr;
  std::uint32_t index_ = 0;
  std::uint64_t live_state_ = 0;
  ExportedBlock block_;
  shared::ExportWord *place_ = nullptr;  // this process's entry in the record's `opener`; null: none
  std::uint64_t address_space_ = 0;      // the address space that has the mapping; a forked child has none
};

}  // namespace ration::ledger

// The right to use another process's block, for as long as this lives: until then its bytes are nobody else's, even
// where its owner has freed it. Layer: ledger. Threads: any. Owns: a mapping that holds the lock (export_file.h), and
// that fork children do not inherit.
#pragma once

#include <memory>
#include <string>

#include "ledger/export_layout.h"

namespace ration::ledger {

class ExportLease {
 public:
  // nullptr: the token is of nothing that can be had: a block that was freed, a process that is gone, a forgery.
  // `problem`, where it is not empty, is why it cannot be told.
  static std::unique_ptr<ExportLease> take(const std::string &state_folder, const ExportToken &token,
                                           std::string &problem);
  ~ExportLease();
  ExportLease(const ExportLease &) = delete;
  ExportLease &operator=(const ExportLease &) = delete;

  const ExportedBlock &block() const { return block_; }
  // Whether its owner has not freed it.
  bool is_live() const;

 private:
  ExportLease() = default;
  bool lock(int descriptor, const ExportToken &token, std::string &problem);
  const shared::ExportRecord &record() const;

  const shared::ExportHeader *header_ = nullptr;
  std::uint32_t index_ = 0;
  std::uint64_t live_state_ = 0;
  ExportedBlock block_;
};

}  // namespace ration::ledger

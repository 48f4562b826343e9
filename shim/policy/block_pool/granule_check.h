// Tries what a driver promises of granules: one is created, mapped twice, copied to and from, unmapped and released.
// A driver may say that it can what it cannot: in a container without its device files, for instance.
// Layer: policy/block_pool. Threads: one, in the context of the pool.
#pragma once

#include <cstdint>
#include <string>

#include "policy/block_pool/granule_support.h"
#include "policy/block_pool/unreturned.h"

namespace ration::policy {

class GranuleCheck {
 public:
  enum class Result { works, fails, no_room };

  GranuleCheck(ledger::Ledger &ledger, Unreturned &unreturned, int device, CUdevice handle,
               const pool::stitch::Layout &layout)
      : account_(ledger.account(device)), unreturned_(unreturned), device_(device), handle_(handle), layout_(layout) {}

  // A driver that refuses `kind` gets a plain one. What it refuses to take back stays charged until it does.
  Result run(GranuleKind &kind);
  // What failed, in words.
  const std::string &reason() const { return reason_; }

 private:
  bool works(GranuleKind kind, CUresult &error);
  const char *create_and_map(GranuleKind kind, CUresult &error);
  const char *copy(CUresult &error) const;
  const char *unmap_alias(CUresult &error);
  void undo();

  ledger::Account &account_;
  Unreturned &unreturned_;
  const int device_;
  const CUdevice handle_;
  const pool::stitch::Layout &layout_;
  CUmemGenericAllocationHandle granule_ = 0;
  bool made_ = false;
  bool mapped_ = false;
  bool aliased_ = false;
  bool is_left_ = false;  // something is the device's still, and charged
  std::string reason_;
};

}  // namespace ration::policy

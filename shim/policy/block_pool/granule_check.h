// Tests whether a driver's granules work: creates one, maps it twice, copies to and from it, unmaps and releases it. A
// driver may claim more than it can do, for instance in a container that lacks its device files.
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

  // If the driver refuses `kind`, tries a plain granule and sets `kind` to plain. Memory stays charged until the driver
  // takes it back.
  Result run(GranuleKind &kind);
  // The reason for a failure, as text.
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
  bool is_left_ = false;  // the driver still holds something, which stays charged
  std::string reason_;
};

}  // namespace ration::policy

// Returns one pool's free slabs to the driver. A slab that the driver does not take back returns to the pool after the
// pool has offered all of its slabs.
// Layer: policy/block_pool. Threads: lives on the stack of one call.
#pragma once

#include <cstdint>
#include <list>

#include "policy/block_pool/backing.h"

namespace ration::policy {

class SlabReleaser : public pool::NoUpstream {
 public:
  SlabReleaser(Backing &backing, const char *api, const ContextRef &context)
      : backing_(backing), api_(api), context_(context) {}
  ~SlabReleaser() override {
    for (const pool::Slab &slab : refused_) {
      (void)existing_pool(*context_)->blocks.add_slab(slab);
    }
  }

  void shrink(const pool::Slab &slab) noexcept override try {
    refused_.push_back(slab);
    if (backing_.give_back(api_, context_, slab)) {
      refused_.pop_back();
      ++slabs;
      bytes += slab.bytes;
    }
  } catch (...) {  // no memory to remember a refusal: the slab stays charged, and ends with its context
  }

  std::uint64_t slabs = 0;
  std::uint64_t bytes = 0;

 protected:
  bool refused() const { return !refused_.empty(); }

  Backing &backing_;
  const char *const api_;
  const ContextRef &context_;

 private:
  std::list<pool::Slab> refused_;
};

}  // namespace ration::policy

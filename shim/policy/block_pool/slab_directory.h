// Maps an address to its slab, and so to the context whose pool the address belongs to.
// Layer: policy/block_pool. Threads: any; no driver call under the lock.
//
// The end of a context is announced before the driver is called, as in address_book.h. Once the driver has destroyed
// the context, it may give the context's addresses to another thread, whose insert() waits until the old slabs have
// ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/lock.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

class SlabDirectory {
 public:
  // Returns false if the context has ended, and the slab with it. Throws bad_alloc, with nothing changed.
  bool insert(std::uint64_t address, std::uint64_t bytes, const ContextRef &context);
  // Removes the slab if it still belongs to that context.
  void erase(std::uint64_t address, const Context &context);
  // Returns once no slab in the range is about to end, so that such a slab's records come before the records of the
  // range's next owner.
  void wait_for_ends(std::uint64_t address, std::uint64_t bytes);

  // The context of the slab around `address`; nullptr if there is no slab, or if this thread is inside the call that
  // ends the slab. Waits while another thread is in such a call, because the driver may refuse to end the context.
  ContextRef owner_of(std::uint64_t address);

  // The device of the slab around `address`, or -1. Never waits.
  int device_at(std::uint64_t address);

  // These apply to every slab of a context, or to the one slab at `address`.
  void begin_end(const ContextRef &context) noexcept;
  void cancel_end(const ContextRef &context) noexcept;
  void begin_end(std::uint64_t address) noexcept;
  void cancel_end(std::uint64_t address) noexcept;

 private:
  struct Slab {
    std::uint64_t address;
    std::uint64_t end;
    ContextRef context;
    const void *ender = nullptr;  // the thread that is ending it
  };
  void set_ender(std::uint64_t address, const void *ender) noexcept;
  // The first slab that ends after `address`.
  std::vector<Slab>::iterator first_after(std::uint64_t address) REQUIRES(mutex_);

  RankedMutex mutex_{Rank::kSlabs};
  std::vector<Slab> slabs_ GUARDED_BY(mutex_);  // by address, disjoint
  // The number of slabs, so that a process without a pool never takes the lock. Relaxed, because a thread that has an
  // address got it after the address's slab was inserted.
  std::atomic<std::size_t> count_{0};
};

}  // namespace ration::policy

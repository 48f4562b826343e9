// Address -> slab: which context's pool an address belongs to.
// Layer: policy. Threads: any; no driver call under the lock.
//
// A context that goes is announced before the driver is called, as in address_book.h: once the driver has destroyed it
// it may hand its addresses to another thread, and that thread's insert waits until the old slabs are done with.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/lock.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

class SlabDirectory {
 public:
  // False: the context has ended, and the slab with it. Throws bad_alloc, with nothing changed.
  bool insert(std::uint64_t address, std::uint64_t bytes, const ContextRef &context);
  // Only where it is still that context's.
  void erase(std::uint64_t address, const Context &context);
  // Returns once no slab that is about to end lies there: its records come before those of whoever got the range.
  void settle(std::uint64_t address, std::uint64_t bytes);

  // The context of the slab around `address`, or nullptr: none, or this thread is inside the call that ends it. While
  // another thread is in such a call this waits: the context may yet live on.
  ContextRef find(std::uint64_t address);

  // Of every slab of a context, or of one slab.
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
  // The first slab that ends behind `address`.
  std::vector<Slab>::iterator first_behind(std::uint64_t address) REQUIRES(mutex_);

  RankedMutex mutex_{Rank::kSlabs};
  std::vector<Slab> slabs_ GUARDED_BY(mutex_);  // by address, disjoint
  // How many there are, so that a process without a pool never takes the lock. Relaxed: whoever holds an address got
  // it behind the insert of its slab.
  std::atomic<std::size_t> count_{0};
};

}  // namespace ration::policy

// Sixteen bytes of shared memory that change in one atomic step.
// Layer: ledger. Threads, and processes: every call is safe.
#pragma once

#include <cstdint>

namespace ration::ledger {

struct WideValue {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

// Every x86-64 processor since 2006 has cmpxchg16b and every ARMv8 ldaxp/stlxp, so nothing here takes a lock. It is
// built from the compiler's __sync call because std::atomic<__int128> goes through libatomic, which may lock, and a
// lock of one process means nothing to another.
class WideWord {
 public:
  // The halves are read one after the other, so they may come from two moments; each was there at its own moment. An
  // exchange that expects such a pair fails. Acquire; pairs with the exchange of whoever wrote the half.
  WideValue load() const {
    const std::uint64_t high = __atomic_load_n(half(1), __ATOMIC_ACQUIRE);
    return {__atomic_load_n(half(0), __ATOMIC_ACQUIRE), high};
  }
  // ThreadSanitizer would put a lock of the process in its place, and other processes would not mind it.
  __attribute__((no_sanitize("thread"))) bool exchange(WideValue expected, WideValue desired) {
    return __sync_bool_compare_and_swap(&bits_, whole(expected), whole(desired));
  }

 private:
  __extension__ using Bits = unsigned __int128;
  using Half = std::uint64_t __attribute__((may_alias));

  static Bits whole(WideValue value) { return static_cast<Bits>(value.high) << 64 | value.low; }
  const Half *half(int which) const { return reinterpret_cast<const Half *>(&bits_) + which; }  // little-endian

  Bits bits_ = 0;
};

static_assert(sizeof(WideWord) == 16);
static_assert(alignof(WideWord) == 16);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace ration::ledger

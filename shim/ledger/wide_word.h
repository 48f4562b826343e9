// Sixteen bytes of shared memory that are changed in one atomic step.
// Layer: ledger. Threads, and processes: every call is safe.
#pragma once

#include <cstdint>

namespace ration::ledger {

struct WideValue {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

// x86-64 processors have had cmpxchg16b since 2006, and every ARMv8 processor has ldaxp/stlxp, so nothing here takes a
// lock. The compiler's __sync call is used because std::atomic<__int128> goes through libatomic, which may use a lock,
// and a lock in one process does not exclude another process.
class WideWord {
 public:
  // Reads the halves one after the other, so they may not belong together, though each was current when read. An
  // exchange that expects such a mix fails. Each load is an acquire that pairs with the exchange that wrote the half.
  WideValue load() const {
    const std::uint64_t high = __atomic_load_n(half(1), __ATOMIC_ACQUIRE);
    return {__atomic_load_n(half(0), __ATOMIC_ACQUIRE), high};
  }
  // ThreadSanitizer would replace the exchange with a lock in this process, which does not exclude other processes.
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

#include "ledger/ledger.h"

namespace ration::ledger {

ReserveOutcome Account::reserve(std::uint64_t bytes) {
  std::uint64_t held = charged_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
    // Subtractions that cannot wrap: held + bytes may.
    if (held > limit || bytes > limit - held) {
      return ReserveOutcome::over_limit;
    }
    if (charged_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed)) {
      return ReserveOutcome::granted;
    }
  }
}

void Account::commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes) {
  release(reserved_bytes - actual_bytes);
}

void Account::release(std::uint64_t bytes) {
  charged_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Account::charge(std::uint64_t bytes) {
  std::uint64_t held = charged_.load(std::memory_order_relaxed);
  while (!charged_.compare_exchange_weak(held, bytes > UINT64_MAX - held ? UINT64_MAX : held + bytes,
                                         std::memory_order_relaxed)) {
  }
}

std::uint64_t Account::available() const {
  const std::uint64_t held = charged();
  const std::uint64_t most = limit();
  return held < most ? most - held : 0;
}

}  // namespace ration::ledger

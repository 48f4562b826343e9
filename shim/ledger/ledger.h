// Who holds how much, in this process: one account a device, under its limit.
// Layer: ledger (a leaf). Threads: every call is one atomic step; safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace ration::ledger {

// Devices that one process can hold memory on. More than any machine has: 16 GPUs of 7 MIG slices each.
inline constexpr int kMaxDevices = 128;

enum class ReserveOutcome {
  granted,
  over_limit,
};

// Bytes of one device. Reserve first, then act, then commit what it really took or release it: at no moment do
// reserved and committed bytes together exceed the limit.
class Account {
 public:
  // No limit until one is set. Lowering it below what is held refuses everything until enough was released.
  void set_limit(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  [[nodiscard]] ReserveOutcome reserve(std::uint64_t bytes);
  // Turns a reservation into `actual_bytes` held. Fewer than reserved gives the rest back. More is the caller's to
  // reserve before: REQUIRES actual_bytes <= reserved_bytes.
  void commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes);
  // Gives back bytes that were reserved or committed.
  void release(std::uint64_t bytes);
  // Takes bytes that are gone already (a context's own memory), whatever the limit says.
  void charge(std::uint64_t bytes);

  // Reserved and committed bytes.
  std::uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }
  // What could still be reserved; 0 when more than the limit is held.
  std::uint64_t available() const;

 private:
  // One word is the whole truth, so its order against other memory does not matter: relaxed throughout.
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> limit_{UINT64_MAX};
};

class Ledger {
 public:
  // REQUIRES 0 <= device < kMaxDevices.
  Account &account(int device) { return accounts_[device]; }
  const Account &account(int device) const { return accounts_[device]; }

 private:
  Account accounts_[kMaxDevices];
};

}  // namespace ration::ledger

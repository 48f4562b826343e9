// Gives others what they wish for of what the pools hold and no block needs, while the program makes no call in which
// that could be seen (Gifts::give_to_others): it sleeps, computes, or allocates in hits alone.
// Layer: policy/block_pool. Threads: any start and stop; its own, one for each group and one for the file of all
// processes, sleep in the kernel until a member wishes. Owns: those threads; a forked child has none.
#pragma once

#include <atomic>
#include <cstdint>

#include "ledger/ledger.h"

namespace ration::policy {

class Gifts;

class Giver {
 public:
  static constexpr std::uint64_t kLastGiftNs = 200'000'000;

  Giver(Gifts &gifts, ledger::Ledger &ledger) : gifts_(gifts), ledger_(ledger) {}
  ~Giver() { end(); }
  Giver(const Giver &) = delete;
  Giver &operator=(const Giver &) = delete;

  // Idempotent. Where no thread can be made, the program's calls give alone.
  void start() noexcept {
    if (!started_.load(std::memory_order_relaxed)) [[unlikely]] {
      start_now();
    }
  }
  // For good. Returns once nothing is being given, unless that takes long.
  void stop() noexcept;
  // The same, once its threads have ended, unless that takes longer. For ever only where the process goes on without
  // this library's state, as in tests.
  void end(std::uint64_t most_ns = UINT64_MAX) noexcept;

 private:
  struct Listener {
    Giver *giver;
    const ledger::Membership *group;
    std::uint32_t seen;  // of its wishes
  };
  [[gnu::cold, gnu::noinline]] void start_now() noexcept;
  static void *run(void *listener) noexcept;
  void listen(const ledger::Membership &group, std::uint32_t seen) noexcept;
  void give() noexcept;

  Gifts &gifts_;
  ledger::Ledger &ledger_;
  std::atomic<bool> started_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<unsigned> giving_{0};     // threads
  std::atomic<unsigned> listening_{0};  // threads
};

}  // namespace ration::policy

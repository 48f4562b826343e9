// Gives the pools' unused memory to processes that need it. Acts while the program makes no call that would give memory
// (Gifts::give_to_others) because it sleeps, computes, or makes only hits.
// Layer: policy/block_pool. Threads: any may start and stop it; its own, one for each group and one for the file of all
// processes, sleep in the kernel until a member wishes for memory. Owns: those threads; a forked child has none.
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

  // Idempotent. If no thread can be created, only the program's calls give memory.
  void start() noexcept {
    if (!started_.load(std::memory_order_relaxed)) [[unlikely]] {
      start_now();
    }
  }
  // Stops giving for good. Returns once no thread is giving, but after kLastGiftNs at the latest.
  void stop() noexcept;
  // Like stop(), but returns once the threads have ended, or after `most_ns`. An unbounded wait is only for processes
  // that continue without this library's state, as tests do.
  void end(std::uint64_t most_ns = UINT64_MAX) noexcept;

 private:
  struct Listener {
    Giver *giver;
    const ledger::Membership *group;
    std::uint32_t seen;  // the count of the group's wishes when it was last read
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

#include "policy/block_pool/giver.h"

#include <memory>
#include <new>

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/wait.h"
#include "policy/block_pool/block_pools.h"

namespace ration::policy {
namespace {

// How long the end of a process may be put off whose main thread has ended before the others.
constexpr std::uint64_t kAloneNs = 2'000'000'000;
constexpr std::uint64_t kLastGiftNs = 200'000'000;

}  // namespace

void Giver::start_now() noexcept {
  if (started_.exchange(true)) {
    return;
  }
  for (const std::unique_ptr<ledger::Membership> &group : ledger_.memberships()) {
    auto *listener = new (std::nothrow) Listener{this, group.get(), group->wishes()};
    if (listener != nullptr && !start_own_thread(run, listener)) {
      delete listener;
    }
  }
}

void *Giver::run(void *listener) noexcept {
  const OwnThread self("ration-give");
  const std::unique_ptr<const Listener> owned(static_cast<const Listener *>(listener));
  owned->giver->listen(*owned->group, owned->seen);
  return nullptr;
}

// Asleep, and when nobody wishes, it does not touch the group's file.
void Giver::listen(const ledger::Membership &group, std::uint32_t seen) noexcept {
  using Woken = ledger::Membership::Woken;
  for (;;) {
    switch (group.wait_for_wish(seen, kAloneNs)) {
      case Woken::by_wish:
        break;
      case Woken::by_time:
        if (OwnThread::are_alone()) {
          return;
        }
        continue;
      case Woken::for_ever:
        return;
    }
    seen = group.wishes();
    giving_.fetch_add(1);
    if (stopped_.load()) {  // stop() reads giving_ after it stores this
      giving_.fetch_sub(1);
      return;
    }
    give();
    giving_.fetch_sub(1);
    wake_waiters();
  }
}

void Giver::give() noexcept {
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    pools_.give_to_others("wish", device);
  }
}

void Giver::stop() noexcept {
  stopped_.store(true);
  const std::uint64_t deadline = now_ns() + kLastGiftNs;
  for (Waiter waiter; giving_.load() != 0 && now_ns() < deadline; waiter.pause()) {
  }
}

}  // namespace ration::policy

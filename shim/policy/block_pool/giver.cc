#include "policy/block_pool/giver.h"

#include <memory>
#include <new>

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/wait.h"
#include "policy/block_pool/gifts.h"

namespace ration::policy {
namespace {

// The longest delay before memory beyond the threshold goes back, and before others see what hits have changed, while
// the program makes no call that would do this.
constexpr std::uint64_t kLookNs = 1'000'000'000;

}  // namespace

void Giver::start_now() noexcept {
  if (started_.exchange(true)) {
    return;
  }
  for (const std::unique_ptr<ledger::Membership> &group : ledger_.memberships()) {
    auto *listener = new (std::nothrow) Listener{this, group.get(), group->wishes()};
    if (listener == nullptr) {
      continue;
    }
    listening_.fetch_add(1);
    if (stopped_.load() || !start_own_thread(run, listener)) {  // end() reads listening_ after it stores this
      listening_.fetch_sub(1);
      delete listener;
    }
  }
}

// A thread may have looked and not sleep yet: it is woken until it has ended.
void Giver::end(std::uint64_t most_ns) noexcept {
  stop();
  const std::uint64_t begun = now_ns();
  for (Waiter waiter; listening_.load() != 0 && now_ns() - begun < most_ns; waiter.pause()) {
    for (const std::unique_ptr<ledger::Membership> &group : ledger_.memberships()) {
      group->wake_sleepers();
    }
  }
}

void *Giver::run(void *listener) noexcept {
  const OwnThread self("ration-give");
  const std::unique_ptr<const Listener> owned(static_cast<const Listener *>(listener));
  owned->giver->listen(*owned->group, owned->seen);
  owned->giver->listening_.fetch_sub(1);
  wake_waiters();
  return nullptr;
}

// Asleep, and when nobody wishes, it does not touch the group's file.
void Giver::listen(const ledger::Membership &group, std::uint32_t seen) noexcept {
  using Woken = ledger::Membership::Woken;
  while (!stopped_.load()) {
    const Woken woken = group.wait_for_wish(seen, kLookNs);
    switch (woken) {
      case Woken::by_wish:
        break;
      case Woken::by_time:
        if (OwnThread::is_main_thread_gone()) {
          return;
        }
        break;
      case Woken::for_ever:
        return;
    }
    const bool wished = woken == Woken::by_wish;
    seen = wished ? group.wishes() : seen;
    giving_.fetch_add(1);
    if (stopped_.load()) {  // stop() reads giving_ after it stores stopped_
      giving_.fetch_sub(1);
      return;
    }
    if (wished) {
      give();
    } else {
      gifts_.look_after();
    }
    giving_.fetch_sub(1);
    wake_waiters();
  }
}

void Giver::give() noexcept {
  gifts_.heed_orders("set");
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    gifts_.give_to_others("wish", device);
  }
}

void Giver::stop() noexcept {
  stopped_.store(true);
  const std::uint64_t deadline = now_ns() + kLastGiftNs;
  for (Waiter waiter; giving_.load() != 0 && now_ns() < deadline; waiter.pause()) {
  }
}

}  // namespace ration::policy

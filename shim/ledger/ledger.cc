#include "ledger/ledger.h"

#include <algorithm>

namespace ration::ledger {

void Account::set_limit(std::uint64_t bytes) {
  limit_.store(bytes, std::memory_order_relaxed);
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->show_limit(shares_[i].device, bytes);
  }
}

bool Account::share(Membership *membership, int device) {
  const int count = shares();
  if (count == kMostShares) {
    return false;
  }
  membership->show_limit(device, limit());
  if (const std::uint64_t already = charged(); already > 0) {
    membership->charge(device, already);
  }
  Share &share = shares_[count];
  share.membership = membership;
  share.device = device;
  share.seen_wish.store(membership->last_wish(device), std::memory_order_relaxed);
  share_count_.store(count + 1, std::memory_order_release);
  publish_span_.store(kMinPublishSpan, std::memory_order_relaxed);
  return true;
}

bool Account::reserve_own(std::uint64_t bytes) {
  std::uint64_t held = charged_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = std::min(limit_.load(std::memory_order_relaxed), kMostHeld);
    // Subtractions cannot wrap; held + bytes could.
    if (held > limit || bytes > limit - held) {
      return false;
    }
    if (charged_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed)) {
      return true;
    }
  }
}

ReserveOutcome Account::reserve(std::uint64_t bytes, Effort effort) {
  if (closed_.load(std::memory_order_relaxed)) {
    return ReserveOutcome::over_group_limit;
  }
  if (!reserve_own(bytes)) {
    return ReserveOutcome::over_limit;
  }
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    const ReserveOutcome outcome = share.membership->reserve(share.device, bytes, effort == Effort::kReclaimFromDead);
    if (outcome != ReserveOutcome::granted) {
      while (--i >= 0) {
        shares_[i].membership->release(shares_[i].device, bytes);
      }
      charged_.fetch_sub(bytes, std::memory_order_relaxed);
      return outcome;
    }
  }
  return ReserveOutcome::granted;
}

void Account::commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes) {
  if (reserved_bytes != actual_bytes) {
    release(reserved_bytes - actual_bytes);
  }
}

void Account::release(std::uint64_t bytes) {
  // Groups first: bytes that this process may reserve again must be available to the others before.
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->release(shares_[i].device, bytes);
  }
  charged_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Account::charge(std::uint64_t bytes) {
  std::uint64_t held = charged_.load(std::memory_order_relaxed);
  while (!charged_.compare_exchange_weak(held, bytes > UINT64_MAX - held ? UINT64_MAX : held + bytes,
                                         std::memory_order_relaxed)) {
  }
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->charge(shares_[i].device, bytes);
  }
}

std::uint64_t Account::left_of_limit() const {
  if (closed_.load(std::memory_order_relaxed)) {
    return 0;
  }
  const std::uint64_t held = charged();
  const std::uint64_t most = std::min(limit(), kMostHeld);
  return held < most ? most - held : 0;
}

std::uint64_t Account::available() const {
  return std::min(left_of_limit(), group_available());
}

std::uint64_t Account::excess() const {
  const std::uint64_t held = charged();
  std::uint64_t most = held - std::min(held, limit());
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    if (const std::uint64_t limit = share.membership->limit(share.device); limit != kNoLimit) {
      const std::uint64_t total = share.membership->total(share.device);
      most = std::max(most, total - std::min(total, limit));
    }
  }
  return most;
}

std::uint64_t Account::attainable() const {
  const std::uint64_t beside = group_available();
  const std::uint64_t held = charged();
  return beside == UINT64_MAX ? limit() : std::min(limit(), held + std::min(beside, UINT64_MAX - held));
}

std::uint64_t Account::group_available() const {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    least = std::min(least, share.membership->available_below_limit(share.device));
  }
  return least;
}

std::uint64_t Account::group_limit() const {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < shares(); ++i) {
    if (const std::uint64_t limit = shares_[i].membership->limit(shares_[i].device); limit != kNoLimit) {
      least = std::min(least, limit);
    }
  }
  return least;
}

Membership *Account::tightest(int &device) const {
  const Share *least = std::min_element(shares_, shares_ + shares(), [](const Share &a, const Share &b) {
    return a.membership->available(a.device) < b.membership->available(b.device);
  });
  if (least == shares_ + shares()) {
    return nullptr;
  }
  device = least->device;
  return least->membership;
}

void Account::reclaim_from_dead() noexcept {
  for (int i = 0; i < shares(); ++i) {
    if (shares_[i].membership->limit(shares_[i].device) != kNoLimit) {
      shares_[i].membership->reclaim_from_dead(shares_[i].device);
    }
  }
}

bool Account::member_died_within(std::uint64_t seconds) noexcept {
  bool died = false;
  for (int i = 0; i < shares(); ++i) {
    died = shares_[i].membership->member_died_within(shares_[i].device, seconds) || died;
  }
  return died;
}

bool Account::is_shared_with(const Membership *membership) const {
  return std::any_of(shares_, shares_ + shares(), [&](const Share &share) { return share.membership == membership; });
}

void Account::want(std::uint64_t bytes) {
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->want(shares_[i].device, bytes);
  }
}

std::uint64_t Account::newly_wanted() {
  std::uint64_t bytes = 0;
  for (int i = 0; i < shares(); ++i) {
    Share &share = shares_[i];
    const std::uint64_t wish = share.membership->last_wish(share.device);
    if (wish != share.seen_wish.load(std::memory_order_relaxed) &&
        wish != share.seen_wish.exchange(wish, std::memory_order_relaxed)) {
      bytes = std::max(bytes, share.membership->wished_by_another(wish));
    }
  }
  return bytes;
}

void Account::answered() {
  for (int i = 0; i < shares(); ++i) {
    Share &share = shares_[i];
    const std::uint64_t wish = share.membership->last_wish(share.device);
    if (shared::Wanted::of(wish).slot == shared::Wanted::of(share.seen_wish.load(std::memory_order_relaxed)).slot) {
      share.seen_wish.store(wish, std::memory_order_relaxed);
    }
  }
}

std::uint64_t Account::surplus() const {
  std::uint64_t most = 0;
  for (int i = 0; i < shares(); ++i) {
    most = std::max(most, shares_[i].membership->surplus(shares_[i].device));
  }
  return most;
}

Account::Obtainable Account::obtainable() {
  Obtainable all{0, left_of_limit()};
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    std::uint64_t of_others = share.membership->surplus_in_granules(share.device);
    if (of_others != 0 && share.membership->limit(share.device) == kNoLimit) {  // of the living alone
      share.membership->reclaim_from_dead(share.device);
      of_others = share.membership->surplus_in_granules(share.device);
    }
    const std::uint64_t left = share.membership->available_below_limit(share.device);
    all.of_others = std::max(all.of_others, of_others);
    all.within_limits = std::min(all.within_limits, left + std::min(of_others, UINT64_MAX - left));
  }
  return all;
}

void Account::publish(const Published &published) {
  const int count = shares();
  if (count == 0) {
    return;
  }
  published_used_.store(published.used, std::memory_order_relaxed);
  publish_span_.store(std::max(kMinPublishSpan, charged() / 64), std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    shares_[i].membership->publish(shares_[i].device, published);
  }
}

void Account::request_publication() {
  if (shares() > 0) {
    published_used_.store(0, std::memory_order_relaxed);
    publish_span_.store(0, std::memory_order_relaxed);
  }
}

Membership *Ledger::join(const std::string &state_folder, GroupKind kind, const std::string &name,
                         std::string &problem) {
  if (process_.identity == 0) {
    process_ = this_process();
  }
  std::unique_ptr<Membership> membership = Membership::join(state_folder, kind, name, process_, problem);
  if (membership == nullptr) {
    return nullptr;
  }
  memberships_.push_back(std::move(membership));
  return memberships_.back().get();
}

}  // namespace ration::ledger

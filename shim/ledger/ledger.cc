#include "ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/raise_to.h"
#include "base/saturating.h"

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
  Share &share = shares_[count];
  share.membership = membership;
  share.device = device;
  share.tree = -1;
  for (int i = 0; membership->covering_tree() != 0 && i < count; ++i) {
    if (shares_[i].membership->tree_number() == membership->covering_tree()) {
      share.tree = i;
    }
  }
  if (const std::uint64_t already = charged(); already > 0) {
    const std::uint64_t in_tree = held_by_tree(share);
    membership->charge(device, already, minus_or_zero(in_tree, already));
  }
  share.seen_wish.store(membership->last_wish(device), std::memory_order_relaxed);
  share_count_.store(count + 1, std::memory_order_release);
  publish_span_.store(kMinPublishSpan, std::memory_order_relaxed);
  return true;
}

void Account::leave_figures(const Membership *membership, GroupFigures *figures) {
  for (int i = 0; i < shares(); ++i) {
    if (shares_[i].membership == membership) {
      shares_[i].figures.store(figures, std::memory_order_release);  // pairs with leave_figures_of()
      leave_figures_of(shares_[i]);
    }
  }
}

void Account::note_groups() const {
  for (int i = 0; i < shares(); ++i) {
    leave_figures_of(shares_[i]);
  }
}

void Account::leave_figures_of(const Share &share) {
  GroupFigures *const figures = share.figures.load(std::memory_order_acquire);
  if (figures == nullptr) {
    return;
  }
  const std::uint64_t limit = share.membership->limit(share.device);
  figures->limit.store(limit == kNoLimit ? 0 : limit, std::memory_order_relaxed);
  raise_to(figures->most_claimed, share.membership->total(share.device));
}

bool Account::reserve_own(std::uint64_t bytes) {
  std::uint64_t held = charged_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = std::min(limit_.load(std::memory_order_relaxed), kMostHeld);
    // Subtracts, because held + bytes could wrap around.
    if (held > limit || bytes > limit - held) {
      return false;
    }
    if (charged_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed)) {
      return true;
    }
  }
}

std::uint64_t Account::held_by_tree(const Share &share) const {
  return share.tree < 0 ? 0 : shares_[share.tree].membership->total(shares_[share.tree].device);
}

std::uint64_t Account::available_in(const Share &share) const {
  return share.membership->available_below_limit(share.device, held_by_tree(share));
}

// What the tree held before decides how much its guarantee covers. Other processes of the tree may just have tried for
// more than they got, so that this request seemed not to be covered: tries again with the lower figure.
ReserveOutcome Account::reserve_in(const Share &share, std::uint64_t bytes, Effort effort, std::uint64_t *totals) {
  constexpr int kTries = 100;
  const bool look = effort == Effort::kReclaimFromDead;
  std::uint64_t *const before = &totals[&share - shares_];
  if (share.tree < 0) {
    return share.membership->reserve(share.device, bytes, look, 0, before);
  }
  std::uint64_t in_tree = totals[share.tree];
  ReserveOutcome outcome = share.membership->reserve(share.device, bytes, look, in_tree, before);
  for (int i = 0; outcome != ReserveOutcome::granted && i < kTries; ++i) {
    const std::uint64_t now = held_by_tree(share);
    const std::uint64_t others = minus_or_zero(now, bytes);
    if (others >= in_tree) {
      break;
    }
    in_tree = others;
    outcome = share.membership->reserve(share.device, bytes, false, in_tree, before);
  }
  return outcome;
}

ReserveOutcome Account::reserve(std::uint64_t bytes, Effort effort) {
  if (closed_.load(std::memory_order_relaxed)) {
    return ReserveOutcome::over_group_limit;
  }
  if (!reserve_own(bytes)) {
    return ReserveOutcome::over_limit;
  }
  std::uint64_t totals[kMostShares];
  std::fill_n(totals, kMostShares, UINT64_MAX);  // so that a tree whose total cannot be read covers nothing
  for (int i = 0; i < shares(); ++i) {
    const ReserveOutcome outcome = reserve_in(shares_[i], bytes, effort, totals);
    if (outcome != ReserveOutcome::granted) {
      leave_figures_of(shares_[i]);
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
  // Groups first: bytes must be available to other members before this process can reserve them again.
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
  std::uint64_t totals[kMostShares];
  std::fill_n(totals, kMostShares, UINT64_MAX);  // so that a tree whose total cannot be read covers nothing
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    share.membership->charge(share.device, bytes, share.tree < 0 ? 0 : totals[share.tree], &totals[i]);
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
  std::uint64_t most = minus_or_zero(held, limit());
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    if (const std::uint64_t limit = share.membership->limit(share.device); limit != kNoLimit) {
      const std::uint64_t total = share.membership->total(share.device);
      most = std::max(most, std::min(minus_or_zero(total, limit), share.membership->beyond_guarantee(share.device)));
    }
  }
  return most;
}

std::uint64_t Account::attainable() const {
  const std::uint64_t beside = group_available();
  const std::uint64_t held = charged();
  return beside == UINT64_MAX ? limit() : std::min(limit(), plus_or_most(held, beside));
}

std::uint64_t Account::group_available() const {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < shares(); ++i) {
    const Share &share = shares_[i];
    least = std::min(least, available_in(share));
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
  const Share *least = std::min_element(shares_, shares_ + shares(), [this](const Share &a, const Share &b) {
    return a.membership->available(a.device, held_by_tree(a)) < b.membership->available(b.device, held_by_tree(b));
  });
  if (least == shares_ + shares()) {
    return nullptr;
  }
  device = least->device;
  return least->membership;
}

Membership *Account::guarantee(std::uint64_t bytes, int &device) {
  for (int i = 0; i < shares(); ++i) {
    Membership &group = *shares_[i].membership;
    if (group.kind() == GroupKind::kNamed && group.covering_tree() == 0 &&
        group.guarantee(shares_[i].device, bytes, true) != ReserveOutcome::granted) {
      device = shares_[i].device;
      return &group;
    }
  }
  return nullptr;
}

std::uint64_t Account::ordered_limit() const {
  std::uint64_t ordered = 0;
  for (int i = 0; ordered == 0 && i < shares(); ++i) {
    ordered = shares_[i].membership->ordered_limit(shares_[i].device);
  }
  return ordered;
}

bool Account::heed_guarantee(std::uint64_t unordered) {
  bool granted = true;
  for (int i = 0; i < shares(); ++i) {
    Membership &group = *shares_[i].membership;
    const std::uint64_t ordered = group.ordered_guarantee(shares_[i].device);
    if (ordered == 0 || ordered == shared::kRefused || group.covering_tree() != 0) {
      continue;
    }
    const std::uint64_t bytes = ordered == shared::kUnordered ? unordered : ordered - 1;
    if (group.guarantee(shares_[i].device, bytes, true) != ReserveOutcome::granted) {
      group.refuse_guarantee(shares_[i].device);
      granted = false;
    }
  }
  return granted;
}

void Account::refuse_guarantee(std::uint64_t before) {
  for (int i = 0; i < shares(); ++i) {
    Membership &group = *shares_[i].membership;
    const std::uint64_t ordered = group.ordered_guarantee(shares_[i].device);
    if (ordered != 0 && ordered != shared::kRefused && group.covering_tree() == 0) {
      (void)group.guarantee(shares_[i].device, before, true);
      group.refuse_guarantee(shares_[i].device);
    }
  }
}

std::uint64_t Account::own_guarantee() const {
  std::uint64_t most = 0;
  for (int i = 0; i < shares(); ++i) {
    most = std::max(most, shares_[i].membership->own_guarantee(shares_[i].device));
  }
  return most;
}

void Account::look_for_orders() {
  const bool found = std::any_of(shares_, shares_ + shares(), [](const Share &share) {
    return share.membership->has_ordered_limit(share.device) || share.membership->ordered_limit(share.device) != 0;
  });
  if (found != is_ordered()) {
    ordered_.store(found, std::memory_order_relaxed);
  }
}

std::uint64_t Account::guaranteed() const {
  std::uint64_t most = 0;
  for (int i = 0; i < shares(); ++i) {
    most = std::max(most, shares_[i].membership->guaranteed(shares_[i].device));
  }
  return most;
}

std::uint64_t Account::fair_part(bool goes_back_in_parts) {
  if (const std::uint64_t mine = own_guarantee(); mine != 0) {
    return mine;
  }
  std::uint64_t of_tree = 0;
  for (int i = 0; i < shares(); ++i) {
    if (const Share &share = shares_[i]; share.tree >= 0) {
      of_tree =
          std::max(of_tree, share.membership->uncovered(static_cast<std::uint32_t>(share.device), held_by_tree(share)));
    }
  }
  if (of_tree != 0) {
    return charged() + of_tree;
  }
  std::uint64_t part = UINT64_MAX;
  for (int i = 0; i < shares(); ++i) {
    if (const std::uint64_t left = available_in(shares_[i]); left != UINT64_MAX) {
      part = std::min(part, left / (2 * (std::uint64_t{shares_[i].membership->members()} + 1)));
    }
  }
  if (part == UINT64_MAX && (goes_back_in_parts || limit() != UINT64_MAX || neighbours() == 0)) {
    return part;
  }
  return charged() + (goes_back_in_parts ? part : 0);
}

std::vector<Holder> Account::holders() const {
  std::vector<Holder> all;
  for (int i = 0; i < shares(); ++i) {
    for (Holder &holder : shares_[i].membership->holders(shares_[i].device)) {
      const bool is_known = std::any_of(all.begin(), all.end(), [&holder](const Holder &each) {
        return each.pid == holder.pid && each.program == holder.program;
      });
      if (!is_known) {
        all.push_back(std::move(holder));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Holder &a, const Holder &b) { return a.claimed() > b.claimed(); });
  return all;
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

void Account::want(std::uint64_t bytes, Of of) {
  for (int i = 0; i < shares(); ++i) {
    if (of == Of::device || shares_[i].membership->kind() != GroupKind::kNone) {
      shares_[i].membership->want(shares_[i].device, bytes);
    }
  }
}

void Account::show_waiting(std::uint64_t bytes) {
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->show_waiting(shares_[i].device, bytes);
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

std::vector<Account::IdleMember> Account::idle_members(Of of) const {
  std::vector<IdleMember> all;
  for (int i = 0; i < shares(); ++i) {
    if (of == Of::limits && shares_[i].membership->kind() == GroupKind::kNone) {
      continue;
    }
    for (const Membership::Idle &idle : shares_[i].membership->idle(shares_[i].device)) {
      all.push_back({shares_[i].membership, shares_[i].device, idle});
    }
  }
  return all;
}

void Account::show_presence() {
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->show_presence(shares_[i].device);
  }
}

std::uint64_t Account::neighbours() {
  const auto seen = [this] {
    std::uint64_t most = 0;
    for (int i = 0; i < shares(); ++i) {
      most = std::max(most, shares_[i].membership->neighbours(shares_[i].device));
    }
    return most;
  };
  const std::uint64_t count = seen();
  const std::uint64_t now = now_ns();
  if (count == 0 || now - looked_for_dead_ns_.load(std::memory_order_relaxed) < kLookForDeadNs) {
    return count;
  }
  looked_for_dead_ns_.store(now, std::memory_order_relaxed);
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->reclaim_from_dead(shares_[i].device);
  }
  return seen();
}

std::uint64_t Account::held_by_others() const {
  std::uint64_t most = 0;
  for (int i = 0; i < shares(); ++i) {
    most = std::max(most, shares_[i].membership->total(shares_[i].device));
  }
  return minus_or_zero(most, charged());
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
    if (of_others != 0 && share.membership->limit(share.device) == kNoLimit) {  // so that it counts only the living
      share.membership->reclaim_from_dead(share.device);
      of_others = share.membership->surplus_in_granules(share.device);
    }
    const std::uint64_t left = available_in(share);
    all.of_others = std::max(all.of_others, of_others);
    all.within_limits = std::min(all.within_limits, plus_or_most(left, of_others));
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

void Account::publish_peak() {
  for (int i = 0; i < shares(); ++i) {
    shares_[i].membership->publish_peak(shares_[i].device);
  }
}

bool Account::shows(std::uint64_t used, std::uint64_t allocations) const {
  for (int i = 0; i < shares(); ++i) {
    if (!shares_[i].membership->shows(shares_[i].device, used, allocations)) {
      return false;
    }
  }
  return true;
}

void Account::request_publication() {
  if (shares() > 0) {
    published_used_.store(0, std::memory_order_relaxed);
    publish_span_.store(0, std::memory_order_relaxed);
  }
}

Membership *Ledger::join(const std::string &state_folder, GroupKind kind, const std::string &name, std::string &problem,
                         const Trees &trees) {
  if (process_.identity == 0) {
    process_ = this_process();
  }
  std::unique_ptr<Membership> membership = Membership::join(state_folder, kind, name, process_, problem, trees);
  if (membership == nullptr) {
    return nullptr;
  }
  memberships_.push_back(std::move(membership));
  return memberships_.back().get();
}

}  // namespace ration::ledger

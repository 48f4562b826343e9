#include "ledger/membership.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/saturating.h"
#include "ledger/device_key.h"
#include "ledger/kill_points.h"
#include "ledger/life_byte.h"
#include "ledger/process_identity.h"
#include "ledger/totals.h"

namespace ration::ledger {

using shared::Cell;
using shared::Tag;

namespace {

constexpr std::uint64_t kMemberReclaimNs = 50'000'000;
constexpr int kOvertakings = 100;

std::uint64_t left(WideValue total, std::uint64_t limit) {
  return total.low < limit ? limit - total.low : 0;
}

}  // namespace

Membership::Membership(GroupFile file, std::uint32_t slot, GroupKind kind, std::string name, LifeProbe probe,
                       const GuaranteeHolder &holder)
    : file_(std::move(file)),
      slot_(slot),
      kind_(kind),
      name_(std::move(name)),
      probe_(std::move(probe)),
      holder_(holder),
      tree_(ledger::tree_number(kind, name_)),
      address_space_(this_address_space()),
      moment_(ticks_of_a_moment()) {
  (void)file_.slots();  // notes that these slots, its own among them, exist
  heeded_.store(file_.slot(slot_).heeded.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (std::uint32_t device = 0; device < shared::kDevices; ++device) {
    const Cell &cell = file_.slot(slot_).cells[device];
    own_[device].operation = cell.applied.load(std::memory_order_relaxed);
  }
}

// False in a forked child, which does not have the mapping, and for a file that was cut short, which lacks pages.
bool Membership::is_here(int device) const {
  return device >= 0 && static_cast<std::uint32_t>(device) < shared::kDevices &&
         this_address_space() == address_space_ && !is_lost();
}

// Touching a page past the end of the file raises SIGBUS. The kernel is asked at most once in a moment: asking costs
// several times as much as an operation, and its answer may be out of date at once anyway.
bool Membership::look(std::uint64_t now) const {
  if (lost_.load(std::memory_order_relaxed)) {
    return true;
  }
  if (!file_.has_pages()) {
    lost_.store(true, std::memory_order_relaxed);
    return true;
  }
  whole_until_.store(now + moment_, std::memory_order_relaxed);
  return false;
}

// Processes without a group share no limit, so a fault in their file must not cause a refusal.
bool Membership::only_shown_and_lost() const {
  return kind_ == GroupKind::kNone && lost_.load(std::memory_order_relaxed);
}

int Membership::device(std::string_view uuid, int ordinal) {
  if (!is_here(0)) {
    return -1;
  }
  const WideValue key = device_key(uuid, ordinal);
  for (std::uint32_t i = 0; i < shared::kDevices; ++i) {
    WideWord &word = file_.header().device[i].uuid;
    at(KillPoint::kDevice);
    if (word.exchange({0, 0}, key)) {
      return static_cast<int>(i);
    }
    const WideValue present = word.load();  // set once, so both halves belong together
    if (present.low == key.low && present.high == key.high) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void Membership::state_limit(int device, std::uint64_t bytes) {
  if (!is_here(device)) {
    return;
  }
  at(KillPoint::kState);
  const auto index = static_cast<std::uint32_t>(device);
  file_.slot(slot_).cells[index].stated.store(std::min(bytes, kNoLimit - 1) + 1, std::memory_order_release);
  recompute_limit(file_, index);
  (void)limit(device);  // seen
}

void Membership::show_limit(int device, std::uint64_t bytes) {
  if (is_here(device)) {
    file_.slot(slot_).cells[device].limit.store(bytes, std::memory_order_relaxed);
  }
}

// Does one operation. False: it would exceed the limit, and nothing changed.
bool Membership::change_claim(std::uint32_t device, std::uint64_t claimed, bool limited, std::uint64_t *before) {
  shared::Device &shared_device = file_.header().device[device];
  Cell &cell = file_.slot(slot_).cells[device];
  Own &own = own_[device];
  const std::uint64_t operation = ((own.operation >> 1) + 1) << 1;
  const std::uint64_t add = minus_or_zero(claimed, own.claimed);
  const std::uint64_t subtract = own.claimed - std::min(claimed, own.claimed);
  bool written = false;
  for (;;) {
    const WideValue total = shared_device.total.load();
    if (before != nullptr) {
      *before = total.low;
    }
    if (limited && add > left(total, shared_device.limit.load().low)) {
      return false;
    }
    if (add == 0 && subtract == 0) {
      return true;
    }
    if (!written) {
      at(KillPoint::kIntent);
      cell.claimed[operation >> 1 & 1].store(claimed, std::memory_order_release);
      written = true;
    }
    const Tag last = Tag::of(total.high);
    if (last.slot != slot_) {
      note_applied(file_, device, last);
    }
    at(KillPoint::kTotal);
    const WideValue changed{total.low + add - std::min(subtract, total.low), Tag{slot_, operation}.packed()};
    if (shared_device.total.exchange(total, changed)) {
      break;
    }
  }
  at(KillPoint::kDone);
  cell.applied.store(operation, std::memory_order_release);
  own.operation = operation;
  own.claimed = claimed;
  return true;
}

// The claim is already in the total; only it counts after the process's end. These fields are for others to read.
void Membership::show(std::uint32_t device) {
  Cell &cell = file_.slot(slot_).cells[device];
  Own &own = own_[device];
  if (!own.touched) {
    at(KillPoint::kTouched);
    cell.touched.store(1, std::memory_order_relaxed);
    own.touched = true;
  }
  cell.guarantee.store(own.guarantee, std::memory_order_relaxed);
  cell.covered.store(own.covered, std::memory_order_relaxed);
}

// The guarantee of this process's tree. The holder's slot stays while a process of the tree lives, except one that
// joined at the moment when the last of the others died.
std::uint64_t Membership::of_holder(std::uint32_t device) const {
  const bool is_there =
      holder_.tree != 0 && file_.slot(holder_.slot).life.load(std::memory_order_acquire) == holder_.life;
  return is_there ? file_.slot(holder_.slot).cells[device].guarantee.load(std::memory_order_seq_cst) : 0;
}

bool Membership::change(std::uint32_t device, const Change &asked, std::uint64_t *before) {
  Guard guard(mutex_);
  Own &own = own_[device];
  const std::uint64_t of_tree = of_holder(device);
  if (holder_.tree != 0 && of_tree == 0 && own.covered != 0) {  // the guarantee is gone
    if (!change_claim(device, own.claimed + own.covered, false, nullptr)) {
      return false;
    }
    own.covered = 0;
  }
  if (asked.add > kMostHeld - std::min(own.held(), kMostHeld)) {
    return false;
  }
  const std::uint64_t guarantee = holder_.tree != 0 ? of_tree : own.guarantee;
  const std::uint64_t counted = holder_.tree != 0 ? asked.tree_held : own.held();
  const std::uint64_t covers = std::min(asked.add, minus_or_zero(guarantee, counted));
  const std::uint64_t unclaims = std::min(asked.subtract, own.beyond());
  const std::uint64_t uncovers = std::min(asked.subtract - unclaims, own.covered);
  if (!change_claim(device, own.claimed + (asked.add - covers) - unclaims, asked.limited, before)) {
    return false;
  }
  own.covered = own.covered + covers - uncovers;
  show(device);
  return true;
}

// Retries while the request would fit: other members may take and release memory meanwhile, and attempts by other
// processes of the tree may have hidden that the guarantee covers this request.
bool Membership::try_again(int device, const Change &asked, std::uint64_t *before) {
  for (int i = 0; i < kOvertakings && asked.add <= available(device, asked.tree_held); ++i) {
    if (change(static_cast<std::uint32_t>(device), asked, before)) {
      return true;
    }
  }
  return false;
}

ReserveOutcome Membership::reserve(int device, std::uint64_t bytes, bool look, std::uint64_t tree_held,
                                   std::uint64_t *before) {
  if (!is_here(device)) {
    return only_shown_and_lost() ? ReserveOutcome::granted : ReserveOutcome::over_group_limit;
  }
  const bool limits = kind_ != GroupKind::kNone;  // processes without a group share no limit, whatever the file says
  const Change asked{bytes, 0, limits, tree_held};
  if (change(static_cast<std::uint32_t>(device), asked, before)) {
    return ReserveOutcome::granted;
  }
  if (look) {
    reclaim_from_dead(device);
    if (try_again(device, asked, before)) {
      return ReserveOutcome::granted;
    }
  }
  return ReserveOutcome::over_group_limit;
}

void Membership::release(int device, std::uint64_t bytes) {
  if (is_here(device)) {
    change(static_cast<std::uint32_t>(device), {0, bytes});
  }
}

void Membership::charge(int device, std::uint64_t bytes, std::uint64_t tree_held, std::uint64_t *before) {
  if (is_here(device)) {
    change(static_cast<std::uint32_t>(device), {bytes, 0, false, tree_held}, before);
  }
}

ReserveOutcome Membership::guarantee(int device, std::uint64_t bytes, bool look) {
  const auto index = static_cast<std::uint32_t>(device);
  const auto try_it = [&] {
    Guard guard(mutex_);
    Own &own = own_[index];
    const std::uint64_t held = own.held();
    if (bytes > kMostHeld || !change_claim(index, std::max(bytes, held), true, nullptr)) {
      return false;
    }
    own.guarantee = bytes;
    own.covered = std::min(bytes, held);
    show(index);
    return true;
  };
  if (!is_here(device)) {
    return ReserveOutcome::over_group_limit;
  }
  bool granted = try_it();
  if (!granted && look) {
    reclaim_from_dead(device);
    granted = try_it();
  }
  return granted ? ReserveOutcome::granted : ReserveOutcome::over_group_limit;
}

void Membership::lower_guarantee(int device, std::uint64_t bytes, FunctionRef<std::uint64_t()> tree_held) {
  if (!is_here(device)) {
    return;
  }
  const auto index = static_cast<std::uint32_t>(device);
  // Sequentially consistent, like the exchanges of the tree's total and the load in of_holder().
  file_.slot(slot_).cells[index].guarantee.exchange(bytes, std::memory_order_seq_cst);
  const std::uint64_t held = tree_held();
  Guard guard(mutex_);
  Own &own = own_[index];
  const std::uint64_t kept = std::max(bytes, std::min(own.guarantee, held));
  if (kept <= own.guarantee && change_claim(index, own.claimed - (own.guarantee - kept), false, nullptr)) {
    own.guarantee = kept;
  }
  show(index);
}

bool Membership::share_life_with(int descriptor) const {
  return share_life(descriptor, slot_) == LifeLock::taken;
}

std::uint64_t Membership::beyond_guarantee(int device) const {
  if (!is_here(device)) {
    return 0;
  }
  Guard guard(mutex_);
  return own_[device].beyond();
}

std::uint64_t Membership::own_guarantee(int device) const {
  return is_here(device) ? file_.slot(slot_).cells[device].guarantee.load(std::memory_order_relaxed) : 0;
}

std::uint64_t Membership::guaranteed(int device) const {
  if (!is_here(device)) {
    return 0;
  }
  const auto index = static_cast<std::uint32_t>(device);
  return holder_.tree != 0 ? of_holder(index)
                           : file_.slot(slot_).cells[index].guarantee.load(std::memory_order_relaxed);
}

std::uint64_t Membership::uncovered(std::uint32_t device, std::uint64_t tree_held) const {
  if (!is_here(static_cast<int>(device))) {
    return 0;
  }
  if (holder_.tree != 0) {
    const std::uint64_t guarantee = of_holder(device);
    return minus_or_zero(guarantee, tree_held);
  }
  const Cell &cell = file_.slot(slot_).cells[device];
  const std::uint64_t guarantee = cell.guarantee.load(std::memory_order_relaxed);
  return minus_or_zero(guarantee, cell.covered.load(std::memory_order_relaxed));
}

std::uint64_t Membership::limit(int device) const {
  if (kind_ == GroupKind::kNone) {
    return kNoLimit;
  }
  if (!is_here(device)) {
    const bool is_cut = this_address_space() == address_space_ && lost_.load(std::memory_order_relaxed);
    return is_cut && device >= 0 && static_cast<std::uint32_t>(device) < shared::kDevices
               ? seen_limits_[static_cast<std::size_t>(device)].load(std::memory_order_relaxed)
               : 0;
  }
  const std::uint64_t limit = file_.header().device[device].limit.load().low;
  seen_limits_[static_cast<std::size_t>(device)].store(limit, std::memory_order_relaxed);
  return limit;
}

std::uint64_t Membership::available_below_limit(int device, std::uint64_t tree_held) const {
  if (kind_ == GroupKind::kNone) {
    return UINT64_MAX;
  }
  if (!is_here(device)) {
    return 0;
  }
  const shared::Device &shared_device = file_.header().device[device];
  const std::uint64_t limit = shared_device.limit.load().low;
  return limit == kNoLimit
             ? UINT64_MAX
             : left(shared_device.total.load(), limit) + uncovered(static_cast<std::uint32_t>(device), tree_held);
}

std::uint32_t Membership::members() const {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; is_here(0) && i < file_.slots(); ++i) {
    if (file_.slot(i).is_owned()) {
      ++count;
    }
  }
  return count;
}

bool Membership::has_limits() const {
  return is_here(0) && std::any_of(std::begin(file_.header().device), std::end(file_.header().device),
                                   [](const shared::Device &device) { return device.limit.load().low != kNoLimit; });
}

std::uint64_t Membership::total(int device) const {
  return is_here(device) ? file_.header().device[device].total.load().low : 0;
}

std::uint64_t Membership::available(int device, std::uint64_t tree_held) const {
  if (!is_here(device)) {
    return 0;
  }
  const shared::Device &shared_device = file_.header().device[device];
  const std::uint64_t below = left(shared_device.total.load(), shared_device.limit.load().low);
  return plus_or_most(below, uncovered(static_cast<std::uint32_t>(device), tree_held));
}

std::vector<Holder> Membership::holders(int device) const {
  std::vector<Holder> holders;
  if (!is_here(device)) {
    return holders;
  }
  const auto index = static_cast<std::uint32_t>(device);
  std::uint64_t covered = 0;  // by the guarantees of trees
  for (std::uint32_t i = 0; i < file_.slots(); ++i) {
    const shared::Slot &slot = file_.slot(i);
    const std::uint64_t life = slot.life.load(std::memory_order_acquire);
    if ((life & 1) == 0) {
      continue;
    }
    const LastOperation last = last_operation(file_, index, i, file_.header().device[index].total.load());
    const std::uint64_t held = held_of(slot.cells[index], last.claimed);
    const std::uint64_t guarantee = slot.cells[index].guarantee.load(std::memory_order_relaxed);
    if (held + guarantee > 0 && slot.life.load(std::memory_order_acquire) == life) {
      const std::size_t length = strnlen(slot.program, sizeof(slot.program));
      covered += guarantee == 0 ? slot.cells[index].covered.load(std::memory_order_relaxed) : 0;
      holders.push_back({slot.pid.load(std::memory_order_relaxed), std::string(slot.program, length), held,
                         slot.cells[index].used.load(std::memory_order_relaxed), guarantee,
                         slot.tree.load(std::memory_order_relaxed) != 0});
    }
  }
  // What members hold under a tree's guarantee is listed as theirs, so it is subtracted from the tree's. The file does
  // not say which tree's guarantee covers it, so it is subtracted from the largest first.
  const auto sort = [&holders] {
    std::stable_sort(holders.begin(), holders.end(),
                     [](const Holder &a, const Holder &b) { return a.claimed() > b.claimed(); });
  };
  sort();
  for (Holder &each : holders) {
    const std::uint64_t held = each.is_of_tree ? std::min(covered, each.guarantee) : 0;
    each.guarantee -= held;
    covered -= held;
  }
  holders.erase(std::remove_if(holders.begin(), holders.end(), [](const Holder &each) { return each.claimed() == 0; }),
                holders.end());
  sort();
  return holders;
}

bool Membership::shows(int device, std::uint64_t used, std::uint64_t allocations) const {
  if (!is_here(device)) {
    return true;
  }
  const Cell &cell = file_.slot(slot_).cells[device];
  return cell.used.load(std::memory_order_relaxed) == used &&
         cell.allocations.load(std::memory_order_relaxed) == allocations;
}

// Not done at each reservation, because the driver may still refuse the memory.
void Membership::publish_peak(int device) {
  if (!is_here(device)) {
    return;
  }
  Cell &cell = file_.slot(slot_).cells[device];
  Guard guard(mutex_);
  Own &own = own_[device];
  if (const std::uint64_t held = own.held(); held > own.peak) {
    at(KillPoint::kPeak);
    own.peak = held;
    cell.peak.store(own.peak, std::memory_order_relaxed);
  }
}

void Membership::publish(int device, const Published &published) {
  if (!is_here(device)) {
    return;
  }
  Cell &cell = file_.slot(slot_).cells[device];
  publish_peak(device);
  at(KillPoint::kPublish);
  cell.used.store(published.used, std::memory_order_relaxed);
  cell.peak_used.store(published.peak_used, std::memory_order_relaxed);
  cell.allocations.store(published.allocations, std::memory_order_relaxed);
  cell.stitching.store(shared::PackedStitching::pack(published.stitching), std::memory_order_relaxed);
  bool failed = false;
  for (std::size_t reason = 0; reason < published.failures.size(); ++reason) {
    cell.failures[reason].store(published.failures[reason], std::memory_order_relaxed);
    failed = failed || published.failures[reason] != 0;
  }
  cell.published_unix_ns.store(unix_ns(), std::memory_order_relaxed);
  if (failed) {
    cell.touched.store(1, std::memory_order_relaxed);
  }
  at(KillPoint::kPublished);
}

void Membership::reclaim_from_dead(int device) noexcept try {
  if (!is_here(device)) {
    return;
  }
  std::string problem;
  if (const LifeProbe::Look look = probe_.look(problem)) {
    if (file_.is_cut(look.number())) {
      lost_.store(true, std::memory_order_relaxed);
      return;
    }
    if (is_unnamed(look.number())) {
      removed_.store(true, std::memory_order_relaxed);
    }
    std::uint32_t cursor = cursor_.load(std::memory_order_relaxed);
    reap(file_, look.number(), slot_, now_ns() + kMemberReclaimNs, cursor);
    cursor_.store(cursor, std::memory_order_relaxed);
  }
  check_limit(file_, static_cast<std::uint32_t>(device));
} catch (...) {  // no host memory for the search, so it found no dead member
}

bool Membership::member_died_within(int device, std::uint64_t seconds) noexcept {
  if (!is_here(device)) {
    return false;
  }
  reclaim_from_dead(device);
  if (!is_here(device)) {
    return false;
  }
  const std::uint64_t last = file_.header().device[device].last_reap_ns.load(std::memory_order_relaxed);
  const std::uint64_t now = now_ns();
  return last != 0 && now - last < seconds * 1'000'000'000;
}

std::string Membership::trouble() {
  std::string problem;
  const bool lost = lost_.load(std::memory_order_relaxed);
  const bool removed = removed_.load(std::memory_order_relaxed);
  const bool blind = !lost && !removed && is_here(0) && !probe_.look(problem);
  if ((!lost && !removed && !blind) || trouble_said_.exchange(true, std::memory_order_relaxed)) {
    return {};
  }
  if (lost) {
    return "its file was cut short, so every allocation is refused: " + probe_.path();
  }
  return removed ? "its file was removed, so processes that join from now on share another limit: " + probe_.path() +
                       "; let the group's processes end"
                 : "members that have ended cannot be found, so what they held stays charged: " + problem;
}

}  // namespace ration::ledger

// Memory charged to this process: one account for each device, under its limit and in every group of the process.
// Layer: ledger (a leaf). Threads: an account's functions are safe from any thread; only the thread that builds the
// runtime joins.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group_figures.h"
#include "ledger/changes.h"
#include "ledger/membership.h"
#include "ledger/transits.h"

namespace ration::ledger {

// Devices on which one process can hold memory. More than any machine has: 16 GPUs of 7 MIG slices each.
inline constexpr int kMaxDevices = 128;

// Whether a refusal comes at once, or only after memory of dead group members was reclaimed (some system calls for each
// member).
enum class Effort { kImmediate, kReclaimFromDead };

// Bytes of one device. Reserve, then act, then commit the bytes actually taken, or release: reserved and committed
// bytes together never exceed the limit, nor do those of a group's members exceed the group's.
class Account {
 public:
  // No limit until one is set. A limit below what is held refuses every request until enough was released.
  void set_limit(std::uint64_t bytes);
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Adds the account to a group, with what is charged by now. False: the account is in too many. REQUIRES: one thread
  // at a time.
  bool share(Membership *membership, int device);
  bool is_shared_with(const Membership *membership) const;
  // Leaves there what it sees of a group that it is shared with: now, whenever that refuses, and in note_groups().
  // REQUIRES: `figures` is never freed.
  void leave_figures(const Membership *membership, GroupFigures *figures);
  // After memory was taken: not before, because what is only reserved may not be had.
  void note_groups() const;
  // A closed account refuses everything: a group that was asked for cannot be joined.
  void close(bool closed = true) { closed_.store(closed, std::memory_order_relaxed); }

  // Design: design/groups.md#several-groups
  [[nodiscard]] ReserveOutcome reserve(std::uint64_t bytes, Effort effort = Effort::kReclaimFromDead);
  // Turns a reservation into `actual_bytes` held and releases the difference. REQUIRES actual_bytes <= reserved_bytes:
  // the caller reserves more beforehand.
  void commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes);
  // Releases bytes that were reserved or committed.
  void release(std::uint64_t bytes);
  // Charges bytes that are already in use (a context's own memory), whatever the limits say.
  void charge(std::uint64_t bytes);

  Transits &transits() { return transits_; }
  Changes &changes() { return changes_; }

  // Reserved and committed bytes.
  std::uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }
  // What could still be reserved; 0 when more than a limit is held.
  std::uint64_t available() const;
  // As available(), of the process's own limit; 0 where the account is closed.
  std::uint64_t left_of_limit() const;
  // What is held beyond a limit, the process's or a group's, whichever is exceeded by more.
  std::uint64_t excess() const;
  // As available(), for groups with a limit only; UINT64_MAX: none has one.
  std::uint64_t group_available() const;
  // The smallest limit of its groups, however much of it others hold; UINT64_MAX: none has one.
  std::uint64_t group_limit() const;
  // The smaller of its own limit and its groups', which a pool of the driver's gets as its cap; UINT64_MAX: none.
  std::uint64_t cap() const { return std::min(limit(), group_limit()); }
  // What the account could hold at most by now: its limit, or what its groups leave it; UINT64_MAX: neither.
  std::uint64_t attainable() const;

  // Sets what this process always obtains in each of its groups that may have a limit. False: one leaves less; `device`
  // is this device's number there, and the others keep it.
  [[nodiscard]] Membership *guarantee(std::uint64_t bytes, int &device);
  // What was ordered for this process while it runs (orders.h): 1 + a limit, kUnordered, or 0.
  std::uint64_t ordered_limit() const;
  // Sets the guarantee that was ordered, `unordered` where none is any more. False: it was refused, which the group's
  // file says from now on.
  bool heed_guarantee(std::uint64_t unordered);
  // Takes that back to `before`: another device's was refused.
  void refuse_guarantee(std::uint64_t before);
  // Of this process's own, in its groups.
  std::uint64_t own_guarantee() const;
  // Whether a limit was ordered for this process or one of its groups, as it was at the last look: then what is held
  // may be more than may be used. The look touches shared memory.
  bool is_ordered() const { return ordered_.load(std::memory_order_relaxed); }
  // Whether more is held than was ordered since.
  bool is_over_order() const { return is_ordered() && excess() != 0; }
  void look_for_orders();
  // What is guaranteed to this process, or to its tree, at least.
  std::uint64_t guaranteed() const;
  // What a pool may take at once, with what the account holds: what is guaranteed to it, or left of what is guaranteed
  // to its tree; else half of its equal share of what its groups leave, counting one member more than there are, and
  // nothing where it does not go back in parts. UINT64_MAX: no group has a limit, nor is a device without any shared
  // with others by what does not go back in parts.
  // Design: design/groups.md#parts
  std::uint64_t fair_part(bool goes_back_in_parts);
  // The group that leaves least, and this device's number in it; nullptr: in no group.
  Membership *tightest(int &device) const;
  // The members of its groups that claim most here, each once.
  std::vector<Holder> holders(std::size_t most) const;
  // Reclaims what dead members held, in every group that has a limit here.
  void reclaim_from_dead() noexcept;
  // Reclaims in all groups. True: a member that held memory here died within the last `seconds`, so the device may be
  // about to get it back.
  bool member_died_within(std::uint64_t seconds) noexcept;

  // Figures that other processes see. The published use may be off by the larger of 1 MiB and a 64th of what is
  // charged. The fast path asks the next two functions: a request that would exceed that error takes the slow path,
  // which publishes.
  bool exceeds_published(std::uint64_t used) const {
    return used > published_used_.load(std::memory_order_relaxed) + publish_span_.load(std::memory_order_relaxed);
  }
  bool is_worth_publishing(std::uint64_t used) const {
    return exceeds_published(used) ||
           published_used_.load(std::memory_order_relaxed) > used + publish_span_.load(std::memory_order_relaxed);
  }
  // How far the use may fall below `used` without a publication; 0: one is due already.
  std::uint64_t max_unpublished_fall(std::uint64_t used) const {
    const std::uint64_t published = published_used_.load(std::memory_order_relaxed);
    const std::uint64_t span = publish_span_.load(std::memory_order_relaxed);
    if (used > published + span) {
      return 0;
    }
    if (published <= span) {
      return UINT64_MAX;
    }
    const std::uint64_t least = published - span;
    return used > least ? used - least : 0;
  }
  void publish(const Published &published);
  // What is held now, as the most so far: after the driver served memory whose use is not published.
  void publish_peak();
  // Whether that is what others see. Reads shared memory.
  bool shows(std::uint64_t used, std::uint64_t allocations) const;
  void request_publication();

  // Whose memory would help: that of the members of its groups, which have limits, or of all processes on the device.
  enum class Of { limits, device };
  // Tells them that this process lacks so much of what they hold.
  void want(std::uint64_t bytes, Of of);
  // Others see that an allocation waits for so much; 0: none does any more.
  void show_waiting(std::uint64_t bytes);
  // What another member lacks, once for each wish.
  std::uint64_t newly_wanted();
  // What that member repeated until now is no new wish.
  void answered();
  // The other members that hold what they do not use, group by group; and how much that is in one of them, at the most.
  struct IdleMember {
    const Membership *group = nullptr;
    int place = 0;  // this device's number there
    Membership::Idle idle;
    bool operator==(const IdleMember &) const = default;
  };
  [[nodiscard]] std::vector<IdleMember> idle_members(Of of) const;
  std::uint64_t surplus() const;
  // This process has a context of the device.
  void show_presence();
  // The other processes that have, or took memory there. Looks for dead ones once in a second.
  std::uint64_t neighbours();
  // What the members of its groups hold but for this process, where they hold most.
  std::uint64_t held_by_others() const;
  // What of it surely goes back where it is wanted: of the device, and of what the limits leave with it. REQUIRES:
  // reclaim_from_dead() was called, which looks only at groups that have a limit; this does at the others.
  struct Obtainable {
    std::uint64_t of_others = 0;
    std::uint64_t within_limits = 0;
  };
  Obtainable obtainable();

 private:
  static constexpr int kMostShares = 16;
  static constexpr std::uint64_t kMinPublishSpan = 1U << 20U;
  static constexpr std::uint64_t kNeverPublish = UINT64_MAX / 2;
  static constexpr std::uint64_t kLookForDeadNs = 1'000'000'000;

  struct Share {
    Membership *membership = nullptr;
    int device = 0;
    int tree = -1;  // the share of the tree whose guarantee covers this process; -1: of none
    std::atomic<std::uint64_t> seen_wish{0};
    std::atomic<GroupFigures *> figures{nullptr};
  };
  int shares() const { return share_count_.load(std::memory_order_acquire); }  // pairs with share()
  bool reserve_own(std::uint64_t bytes);
  ReserveOutcome reserve_in(const Share &share, std::uint64_t bytes, Effort effort, std::uint64_t *totals);
  static void leave_figures_of(const Share &share);
  // What the tree holds whose guarantee covers this process in that share.
  std::uint64_t held_by_tree(const Share &share) const;
  std::uint64_t available_in(const Share &share) const;
  // This word alone is the state, so its order against other memory does not matter: relaxed throughout.
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> limit_{UINT64_MAX};
  std::atomic<bool> closed_{false};
  std::atomic<bool> ordered_{false};
  std::atomic<std::uint64_t> published_used_{0};
  std::atomic<std::uint64_t> publish_span_{kNeverPublish};
  std::atomic<std::uint64_t> looked_for_dead_ns_{0};
  Share shares_[kMostShares] = {};
  std::atomic<int> share_count_{0};
  Transits transits_;
  Changes changes_;
};

class Ledger {
 public:
  // REQUIRES 0 <= device < kMaxDevices.
  Account &account(int device) { return accounts_[device]; }
  const Account &account(int device) const { return accounts_[device]; }

  // Joins a group for good. nullptr: `problem` says why.
  Membership *join(const std::string &state_folder, GroupKind kind, const std::string &name, std::string &problem,
                   const Trees &trees = {});
  // Of all groups that were joined.
  [[nodiscard]] const std::vector<std::unique_ptr<Membership>> &memberships() const { return memberships_; }

 private:
  Account accounts_[kMaxDevices];
  ProcessIdentity process_;
  std::vector<std::unique_ptr<Membership>> memberships_;  // fixed before the first reservation
};

}  // namespace ration::ledger

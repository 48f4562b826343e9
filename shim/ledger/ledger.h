// The memory charged to this process. Each device has one account, which counts against the process's limit and in
// every group of the process.
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

// The most devices on which one process can hold memory. No machine has more: 16 GPUs with 7 MIG slices each make 112
// devices.
inline constexpr int kMaxDevices = 128;

// Refuse a request at once, or only after reclaiming the memory of dead group members, which costs some system calls
// for each member.
enum class Effort { kImmediate, kReclaimFromDead };

// The bytes charged for one device. A caller reserves bytes, asks the driver, then commits the bytes that it got and
// releases the rest. The sum of reserved and committed bytes never exceeds the limit, and over all members of a group
// it never exceeds the group's limit.
class Account {
 public:
  // There is no limit until this is called. While more bytes are held than the limit allows, every request is refused.
  void set_limit(std::uint64_t bytes);
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Adds the account to a group and charges the group with the bytes held so far. Returns false if the account is in
  // too many groups. REQUIRES: one thread at a time.
  bool share(Membership *membership, int device);
  bool is_shared_with(const Membership *membership) const;
  // Writes the group's limit and largest total to `figures`: now, whenever the group refuses a request, and in
  // note_groups().
  // REQUIRES: `figures` is never freed.
  void leave_figures(const Membership *membership, GroupFigures *figures);
  // Updates the figures of leave_figures(). Called only after memory was taken, because the driver may still refuse
  // bytes that are merely reserved.
  void note_groups() const;
  // A closed account refuses every request. Used if a requested group cannot be joined.
  void close(bool closed = true) { closed_.store(closed, std::memory_order_relaxed); }

  // Design: design/groups.md#several-groups
  [[nodiscard]] ReserveOutcome reserve(std::uint64_t bytes, Effort effort = Effort::kReclaimFromDead);
  // Turns `actual_bytes` of a reservation into held bytes and releases the rest. REQUIRES: actual_bytes <=
  // reserved_bytes, so the caller reserves enough beforehand.
  void commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes);
  // Releases bytes that were reserved or committed.
  void release(std::uint64_t bytes);
  // Charges bytes that are already in use (such as a context's own memory), whatever the limits say.
  void charge(std::uint64_t bytes);

  Transits &transits() { return transits_; }
  Changes &changes() { return changes_; }

  // Reserved and committed bytes.
  std::uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }
  // The bytes that could still be reserved; 0 if a limit is already exceeded.
  std::uint64_t available() const;
  // Like available(), but for the process's own limit only; 0 if the account is closed.
  std::uint64_t left_of_limit() const;
  // The bytes that this process holds beyond its own limit or beyond a group's, whichever excess is larger.
  std::uint64_t excess() const;
  // Like available(), but for the limits of its groups only; UINT64_MAX if no group has a limit.
  std::uint64_t group_available() const;
  // The smallest limit of its groups, however much others hold of it; UINT64_MAX if no group has a limit.
  std::uint64_t group_limit() const;
  // The smaller of its own limit and group_limit(). It becomes the cap of a driver pool. UINT64_MAX if there is no
  // limit.
  std::uint64_t cap() const { return std::min(limit(), group_limit()); }
  // The most that the account could hold at present: its limit or, if smaller, the sum of what it holds and what its
  // groups leave. UINT64_MAX if there is no limit.
  std::uint64_t attainable() const;

  // Sets the guarantee of this process in each of its named groups where no tree's guarantee covers it. Returns nullptr
  // if all groups granted it, else the first group whose limit leaves too little; `device` is then this device's number
  // in that group, and the groups asked before it keep the guarantee.
  [[nodiscard]] Membership *guarantee(std::uint64_t bytes, int &device);
  // The limit that was ordered for this process while it runs (orders.h): 1 + bytes, kUnordered, or 0 for none.
  std::uint64_t ordered_limit() const;
  // Sets the guarantee that was ordered, or `unordered` if the order was withdrawn. Returns false if a group refused
  // it; the group's file then records the refusal.
  bool heed_guarantee(std::uint64_t unordered);
  // Sets the guarantee back to `before` and marks the order as refused, because another device's guarantee was refused.
  void refuse_guarantee(std::uint64_t before);
  // The largest guarantee that this process itself has in one of its groups.
  std::uint64_t own_guarantee() const;
  // True if the last look_for_orders() found an ordered limit for this process or one of its groups. If so, the process
  // may hold more than the limit allows. look_for_orders() reads shared memory.
  bool is_ordered() const { return ordered_.load(std::memory_order_relaxed); }
  // True if a limit was ordered and more is held than the limits allow.
  bool is_over_order() const { return is_ordered() && excess() != 0; }
  void look_for_orders();
  // The largest guarantee that this process, or its tree, has in one of its groups.
  std::uint64_t guaranteed() const;
  // The most that the account may hold after a pool has preallocated. If the process has a guarantee, the guarantee. If
  // its tree has a guarantee, what the account holds plus what is left of the guarantee. Otherwise, what the account
  // holds plus half of an equal share of what its groups leave, counting one member more than there are. If the memory
  // cannot be returned in parts, this share is 0 where a group has a limit, and also where there is no limit at all and
  // other processes use the device. UINT64_MAX: no bound.
  // Design: design/groups.md#parts
  std::uint64_t fair_part(bool goes_back_in_parts);
  // The group that leaves least; `device` receives this device's number there. nullptr: the account is in no group.
  Membership *tightest(int &device) const;
  // The members of its groups that claim memory on this device, the largest first; each process appears once.
  std::vector<Holder> holders() const;
  // Reclaims the memory of dead members, in every group that has a limit on this device.
  void reclaim_from_dead() noexcept;
  // Reclaims in all groups. Returns true if, within the last `seconds`, a member that held memory of the device was
  // found dead, so the driver may not have freed all of that memory yet.
  bool member_died_within(std::uint64_t seconds) noexcept;

  // The next functions concern the figures that other processes see. The published use may be off by the larger of 1
  // MiB and a 64th of the charged bytes. The fast path calls the next two functions; a request that would make the
  // error larger takes the slow path, which publishes the use.
  bool exceeds_published(std::uint64_t used) const {
    return used > published_used_.load(std::memory_order_relaxed) + publish_span_.load(std::memory_order_relaxed);
  }
  bool is_worth_publishing(std::uint64_t used) const {
    return exceeds_published(used) ||
           published_used_.load(std::memory_order_relaxed) > used + publish_span_.load(std::memory_order_relaxed);
  }
  // How far the use may fall below `used` before the figures must be published; 0 if they must be published now.
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
  // Raises the published peak to the bytes held now. Called after the driver supplied memory whose use is not
  // published.
  void publish_peak();
  // True if other processes see exactly these figures. Reads shared memory.
  bool shows(std::uint64_t used, std::uint64_t allocations) const;
  void request_publication();

  // Whose memory would help. limits: memory of the members of its groups. device: memory of any process on the device.
  enum class Of { limits, device };
  // Tells these processes how many bytes this process lacks, because they may hold unused memory.
  void want(std::uint64_t bytes, Of of);
  // Shows other processes that an allocation is waiting for `bytes`; 0: no allocation waits any more.
  void show_waiting(std::uint64_t bytes);
  // The bytes that another member lacks, returned once for each wish; 0 if there is no new wish.
  std::uint64_t newly_wanted();
  // If the member whose wish was seen last has repeated it since, the repeated wish will not count as new.
  void answered();
  // The other members that hold memory without using it, group by group. surplus(): the sum of this memory, in the
  // group where it is largest.
  struct IdleMember {
    const Membership *group = nullptr;
    int place = 0;  // this device's number in the group
    Membership::Idle idle;
    bool operator==(const IdleMember &) const = default;
  };
  [[nodiscard]] std::vector<IdleMember> idle_members(Of of) const;
  std::uint64_t surplus() const;
  // Shows other processes that this process has a context on the device.
  void show_presence();
  // The number of other processes that have a context on the device or took memory there. Looks for dead processes at
  // most once a second.
  std::uint64_t neighbours();
  // The bytes that the other members claim, in the group where they claim most.
  std::uint64_t held_by_others() const;
  // The memory of other processes that will surely be returned if it is wanted (`of_others`), and what the limits would
  // then leave (`within_limits`). REQUIRES: reclaim_from_dead() was called. That function reclaims only in groups with
  // a limit; obtainable() does so in the others.
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
    int tree = -1;  // index in shares_ of the tree whose guarantee covers this process; -1: none
    std::atomic<std::uint64_t> seen_wish{0};
    std::atomic<GroupFigures *> figures{nullptr};
  };
  int shares() const { return share_count_.load(std::memory_order_acquire); }  // pairs with share()
  bool reserve_own(std::uint64_t bytes);
  ReserveOutcome reserve_in(const Share &share, std::uint64_t bytes, Effort effort, std::uint64_t *totals);
  static void leave_figures_of(const Share &share);
  // The total of the tree whose guarantee covers this process in that group; 0 if there is no such tree.
  std::uint64_t held_by_tree(const Share &share) const;
  std::uint64_t available_in(const Share &share) const;
  // All accesses are relaxed, because the count's value never decides whether other memory may be read.
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

  // Joins a group until the process ends. On failure returns nullptr, and `problem` says why.
  Membership *join(const std::string &state_folder, GroupKind kind, const std::string &name, std::string &problem,
                   const Trees &trees = {});
  // One membership for each group that was joined.
  [[nodiscard]] const std::vector<std::unique_ptr<Membership>> &memberships() const { return memberships_; }

 private:
  Account accounts_[kMaxDevices];
  ProcessIdentity process_;
  std::vector<std::unique_ptr<Membership>> memberships_;  // fixed before the first reservation
};

}  // namespace ration::ledger

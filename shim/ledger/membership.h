// This process in one group: its slot of the group's file, from joining until the process ends.
// Layer: ledger. Threads: every function is safe. In a forked child every function of the parent's object refuses.
// Owns: the slot, which the process never gives up: other processes reclaim what it held after its end.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "base/ticks.h"
#include "ledger/group_file.h"
#include "ledger/group_view.h"
#include "ledger/life_probe.h"
#include "ledger/process_identity.h"

namespace ration::ledger {

enum class ReserveOutcome {
  granted,
  over_limit,        // the process's own
  over_group_limit,  // a group's, or a group's ledger is not usable
};

// Figures of one device for display.
struct Published {
  std::uint64_t used = 0;
  std::uint64_t peak_used = 0;
  std::uint64_t allocations = 0;
  std::array<std::uint64_t, kFailureReasons.size()> failures{};
  Stitching stitching{};
};

struct Holder {
  int pid = 0;
  std::string program;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;       // as it published it last
  std::uint64_t guarantee = 0;  // whatever it holds of it; of a tree's: what the tree's members do not hold of it
  bool is_of_tree = false;      // the guarantee: it holds it for what it started, and nothing itself

  std::uint64_t claimed() const { return reserved > guarantee ? reserved : guarantee; }
};

// The slot that holds a guarantee for a tree, as long as its `life` stays the same.
struct GuaranteeHolder {
  std::uint64_t tree = 0;  // 0: none
  std::uint32_t slot = 0;
  std::uint64_t life = 0;
};

// Of one process on one device: more than any has, and so little that the sum over all members never wraps around.
inline constexpr std::uint64_t kMostHeld = std::uint64_t{1} << 50;

// A tree by its number, 0: none. A process may hold a guarantee for all processes of a tree.
struct Trees {
  std::uint64_t held_for = 0;           // this process holds the guarantee of that one
  std::vector<std::uint64_t> within{};  // it is in these, the innermost first
};

class Membership {
 public:
  // nullptr: `problem` says why, and the remedy. Waits at most 100 ms.
  static std::unique_ptr<Membership> join(const std::string &state_folder, GroupKind kind, const std::string &name,
                                          const ProcessIdentity &process, std::string &problem,
                                          const Trees &trees = {});

  GroupKind kind() const { return kind_; }
  const std::string &name() const { return name_; }

  // The index of a device in this group; -1 when the group has no place left.
  int device(std::string_view uuid, int ordinal);

  // The limit that this process states for the group, and the limit of its own that others see.
  void state_limit(int device, std::uint64_t bytes);
  void show_limit(int device, std::uint64_t bytes);

  // Lets whoever has a descriptor of its own of this group's file keep this member's place. REQUIRES: held_for a tree.
  bool share_life_with(int descriptor) const;

  // The number of the tree that this group is; 0: it is none.
  std::uint64_t tree_number() const { return tree_; }
  // The tree whose guarantee covers what this process holds; 0: it has its own, or none.
  std::uint64_t covering_tree() const { return holder_.tree; }

  // Atomically adds to the total what no guarantee covers, if it stays within the limit. With `look`, a refusal comes
  // only after memory of dead members was reclaimed: some system calls for each member, at most 50 ms. `tree_held`:
  // what the covering tree held before. `before`, if given, gets the total before.
  [[nodiscard]] ReserveOutcome reserve(int device, std::uint64_t bytes, bool look, std::uint64_t tree_held = 0,
                                       std::uint64_t *before = nullptr);
  void release(int device, std::uint64_t bytes);
  // Charges bytes that are already in use, whatever the limit says.
  void charge(int device, std::uint64_t bytes, std::uint64_t tree_held = 0, std::uint64_t *before = nullptr);

  // Sets what this process, or the tree for which it joined, always obtains. Refused, with nothing changed: the limit
  // does not leave so much. `look` as for reserve().
  // Design: design/groups.md#guarantees
  [[nodiscard]] ReserveOutcome guarantee(int device, std::uint64_t bytes, bool look);
  // The same for less than before, for the tree for which it joined. What the tree holds stays claimed, and guaranteed,
  // since its processes claim nothing of their own for what is covered. `tree_held` is asked when none of them can be
  // covered beyond `bytes` any more: they reserve in the tree before they look at the guarantee.
  void lower_guarantee(int device, std::uint64_t bytes, FunctionRef<std::uint64_t()> tree_held);
  void show_total(int device, std::uint64_t bytes);

  // What was ordered for this process since it took note last (orders.h). A word that changes with each order.
  std::uint64_t orders() const;
  std::uint64_t heeded() const;
  void take_note(std::uint64_t of_orders);
  // An order: 1 + bytes, kUnordered, or 0.
  std::uint64_t ordered_limit(int device) const;
  std::uint64_t ordered_guarantee(int device) const;
  bool has_ordered_limit(int device) const;  // the group
  void refuse_guarantee(int device);

  // What this process holds a guarantee of, for itself or for a tree.
  std::uint64_t own_guarantee(int device) const;
  // What this process holds without a guarantee.
  std::uint64_t beyond_guarantee(int device) const;
  // What is left of the guarantee, this process's or its tree's, which holds so much. REQUIRES: the file is there.
  std::uint64_t uncovered(std::uint32_t device, std::uint64_t tree_held) const;
  // What is guaranteed to this process, or to its tree, now.
  std::uint64_t guaranteed(int device) const;

  // Of a file that was cut short: the last one that was seen.
  std::uint64_t limit(int device) const;
  std::uint64_t total(int device) const;
  // What the limit leaves; UINT64_MAX: there is no limit. 0 where the ledger is not usable.
  // In both with what is left of a guarantee; `tree_held` as for reserve().
  std::uint64_t available_below_limit(int device, std::uint64_t tree_held = 0) const;
  std::uint64_t available(int device, std::uint64_t tree_held = 0) const;

  // Processes in the group, this one among them; the dead as long as nobody has looked for them.
  std::uint32_t members() const;

  // Whether a member stated a limit for the group on any device.
  bool has_limits() const;

  // The members that hold most there, at most `most` of them.
  std::vector<Holder> holders(int device, std::size_t most) const;

  void publish(int device, const Published &published);
  // Others see that at least so much was held as is now: before it is given back without a publication.
  void publish_peak(int device);
  bool shows(int device, std::uint64_t used, std::uint64_t allocations) const;

  // One place in the queue for all that it waits for, by device; first come, first served. Others see it waiting.
  using Wants = std::vector<std::pair<int, std::uint64_t>>;
  void queue_up(const Wants &wants);
  void leave_queue();
  // The living members that came before, wait for one of the same devices, and have asked this within the last two
  // seconds. Reclaims from the dead.
  std::size_t ahead() noexcept;
  // What the driver took on its own account for the last run of the queue.
  void learn_overhead(int device, std::uint64_t bytes);
  std::uint64_t learnt_overhead(int device) const;

  // This process has a context of the device, and may come to hold memory there.
  void show_presence(int device);
  // The other members that have, or hold or held memory there.
  std::uint64_t neighbours(int device) const;

  // Others see that an allocation waits for so much; 0: none does any more.
  void show_waiting(int device, std::uint64_t bytes);

  // Tells the other members that this one lacks so much memory of the device, which they may hold and not use.
  void want(int device, std::uint64_t bytes);
  // The last such wish of any member, as a word that differs from the one before; 0: none. And what another member
  // wished for in it; 0: it was this one.
  std::uint64_t last_wish(int device) const;
  std::uint64_t wished_by_another(std::uint64_t wish) const;
  // A word that changes with every wish, on any device.
  [[nodiscard]] std::uint32_t wishes() const;
  // Sleeps until it is no longer `seen`, at most so long. `for_ever`: there is no such place to sleep any more.
  enum class Woken { by_wish, by_time, for_ever };
  [[nodiscard]] Woken wait_for_wish(std::uint32_t seen, std::uint64_t ns) const;
  // As if somebody wished.
  void wake_sleepers() const;
  // What another member holds beyond the blocks of its program, as it published them: at the most, because the
  // published use may be off. REQUIRES of is_stopped(): one PID namespace; elsewhere nobody is. A process that is
  // stopped gives nothing.
  struct Idle {
    std::uint32_t slot = 0;
    std::uint64_t life = 0;
    std::uint64_t operation = 0;  // its last one there: another number once it has taken or given anything
    std::uint64_t bytes = 0;
    int pid = 0;
    bool operator==(const Idle &) const = default;
    bool is_stopped() const;
    // Its thread that gives is at work, or waits for a processor.
    bool is_giving() const;
  };
  [[nodiscard]] std::vector<Idle> idle(int device) const;
  // Of all other members.
  std::uint64_t surplus(int device) const { return surplus_of(device, Bound::published); }
  // At least so much of it is in granules, which go back whatever the device does.
  std::uint64_t surplus_in_granules(int device) const { return surplus_of(device, Bound::in_granules); }

  // Reclaims what dead members held, and recomputes the limit there from the living members if it is wrong.
  void reclaim_from_dead(int device) noexcept;
  // The same. True: a member that held memory there was found dead within the last `seconds`, by any process, so the
  // device may be about to get it back.
  bool member_died_within(int device, std::uint64_t seconds) noexcept;
  // What is wrong with the group's file, and what follows from it. Empty: nothing, or it was said before.
  std::string trouble();

 private:
  Membership(GroupFile file, std::uint32_t slot, GroupKind kind, std::string name, LifeProbe probe,
             const GuaranteeHolder &holder);
  // What is idle, as published, at the most, or surely to be had because it is in granules.
  enum class Bound { published, most, in_granules };
  std::uint64_t surplus_of(int device, Bound bound) const;
  // `operation`, if given, gets the number of the member's last one.
  std::uint64_t idle_of(std::uint32_t slot, std::uint32_t device, Bound bound,
                        std::uint64_t *operation = nullptr) const;
  struct Own;
  struct Change {
    std::uint64_t add = 0, subtract = 0;  // what the process holds
    bool limited = false;
    std::uint64_t tree_held = 0;  // before
  };
  bool change(std::uint32_t device, const Change &change, std::uint64_t *before = nullptr);
  bool change_claim(std::uint32_t device, std::uint64_t claimed, bool limited, std::uint64_t *before) REQUIRES(mutex_);
  bool try_again(int device, const Change &asked, std::uint64_t *before);
  void show(std::uint32_t device) REQUIRES(mutex_);
  std::uint64_t of_holder(std::uint32_t device) const;
  bool is_here(int device) const;
  std::uint32_t slots_on(int device) const { return is_here(device) ? file_.slots() : 0; }
  bool is_lost() const {
    const std::uint64_t now = ticks();
    return now >= whole_until_.load(std::memory_order_relaxed) && look(now);
  }
  // Design: design/ledger.md#files-cut-short
  [[gnu::cold, gnu::noinline]] bool look(std::uint64_t now) const;
  bool only_shown_and_lost() const;

  struct Own {  // of one device: the state from which the next operation starts
    std::uint64_t operation = 0;
    std::uint64_t claimed = 0;
    std::uint64_t guarantee = 0;  // of the claim
    std::uint64_t covered = 0;    // held without a claim of its own: of the guarantee, this process's or its tree's
    std::uint64_t peak = 0;
    bool touched = false;

    std::uint64_t beyond() const { return claimed - guarantee; }
    std::uint64_t held() const { return beyond() + covered; }
  };

  const GroupFile file_;
  const std::uint32_t slot_;
  const GroupKind kind_;
  const std::string name_;
  const LifeProbe probe_;
  const GuaranteeHolder holder_;
  const std::uint64_t tree_;
  const std::uint64_t address_space_;
  // Serialises the operations of one slot. Held for some exchanges, never across a system call.
  mutable RankedMutex mutex_{Rank::kMembership};
  Own own_[shared::kDevices] GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> heeded_{0};  // of the orders
  std::atomic<std::uint32_t> cursor_{0};
  mutable std::array<std::atomic<std::uint64_t>, shared::kDevices> seen_limits_{};
  const std::uint64_t moment_;                         // in ticks, between two looks at the file
  mutable std::atomic<std::uint64_t> whole_until_{0};  // in ticks: no look is due until then
  mutable std::atomic<bool> lost_{false};              // it was cut short: its pages must not be touched any more
  std::atomic<bool> removed_{false};                   // its last name was taken from it
  std::atomic<bool> trouble_said_{false};
};

// The number of a tree by its name; 0: of no tree.
std::uint64_t tree_number(GroupKind kind, const std::string &name);

// The name of the group of this PID namespace's processes that state the container limit `stated`.
std::string container_group_name(const std::string &stated);

// The file name of a group, and the group of a file name. False: not a group's file name.
std::string file_name(GroupKind kind, const std::string &name);
bool group_of_file(const std::string &file, GroupKind &kind, std::string &name);

// The group's name in a message.
std::string group_label(GroupKind kind, const std::string &name);

}  // namespace ration::ledger

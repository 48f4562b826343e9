// The membership of this process in one group: it has a slot in the group's file from joining until it ends.
// Layer: ledger. Threads: every function is safe. In a forked child, every function of the parent's object does nothing
// or refuses. Owns: the slot. The process never frees it; after its end, other processes reclaim its memory.
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
  over_limit,        // refused by the process's own limit
  over_group_limit,  // refused by a group's limit, or its ledger is not usable
};

// The figures that other processes display for this process on one device.
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
  std::uint64_t used = 0;       // as the member last published it
  std::uint64_t guarantee = 0;  // whether the memory is held or not; for a tree, only the part that it does not hold
  bool is_of_tree = false;      // the guarantee is for the processes that it started; it holds no memory itself

  std::uint64_t claimed() const { return reserved > guarantee ? reserved : guarantee; }
};

// The slot that holds a guarantee for a tree; valid as long as its `life` stays the same.
struct GuaranteeHolder {
  std::uint64_t tree = 0;  // 0: none
  std::uint32_t slot = 0;
  std::uint64_t life = 0;
};

// The most bytes that one process can hold on one device. No device has more, and the sum over all members cannot wrap.
inline constexpr std::uint64_t kMostHeld = std::uint64_t{1} << 50;

// Trees, given by their numbers; 0: none. A process may hold a guarantee for all processes of a tree.
struct Trees {
  std::uint64_t held_for = 0;           // the tree whose guarantee this process holds
  std::vector<std::uint64_t> within{};  // the trees that this process is in, the innermost first
};

class Membership {
 public:
  // On failure returns nullptr, and `problem` gives the reason and the remedy. Waits at most 100 ms.
  static std::unique_ptr<Membership> join(const std::string &state_folder, GroupKind kind, const std::string &name,
                                          const ProcessIdentity &process, std::string &problem,
                                          const Trees &trees = {});

  GroupKind kind() const { return kind_; }
  const std::string &name() const { return name_; }
  // A number that tells this group from earlier groups of the same name, whose members had all ended before it began.
  std::uint64_t random() const { return file_.header().random.load(std::memory_order_relaxed); }

  // The index of a device in this group; -1 if the group has no room for another device.
  int device(std::string_view uuid, int ordinal);

  // Sets the limit that this process states for the group. show_limit(): sets the limit of the process itself, for
  // display only.
  void state_limit(int device, std::uint64_t bytes);
  void show_limit(int device, std::uint64_t bytes);

  // Takes a shared lock on this member's life byte for `descriptor`, which has its own open file description of this
  // group's file. The lock preserves the member's slot. REQUIRES: this process holds the guarantee of a tree.
  bool share_life_with(int descriptor) const;

  // The tree's number if this group is a tree, else 0.
  std::uint64_t tree_number() const { return tree_; }
  // The tree whose guarantee covers what this process holds; 0 if the process has its own guarantee, or none.
  std::uint64_t covering_tree() const { return holder_.tree; }

  // Atomically adds to the total the part of `bytes` that no guarantee covers, if the total stays within the limit.
  // If `look` is true, refuses only after reclaiming the memory of dead members, which costs some system calls for each
  // member and at most 50 ms. `tree_held`: what the covering tree held before. `before`, if given, receives the
  // previous total.
  [[nodiscard]] ReserveOutcome reserve(int device, std::uint64_t bytes, bool look, std::uint64_t tree_held = 0,
                                       std::uint64_t *before = nullptr);
  void release(int device, std::uint64_t bytes);
  // Charges bytes that are already in use, whatever the limit says.
  void charge(int device, std::uint64_t bytes, std::uint64_t tree_held = 0, std::uint64_t *before = nullptr);

  // Sets the guarantee of this process, or of the tree for which it joined. If the limit does not leave that much,
  // refuses and changes nothing. `look` means the same as in reserve().
  // Design: design/groups.md#guarantees
  [[nodiscard]] ReserveOutcome guarantee(int device, std::uint64_t bytes, bool look);
  // Lowers the guarantee of the tree for which this process joined. Memory that the tree holds stays claimed and
  // guaranteed, because its processes do not claim guaranteed memory. `tree_held` is called after that; it sees all
  // memory reserved under the old guarantee, since a process reserves in the tree before it reads the guarantee.
  void lower_guarantee(int device, std::uint64_t bytes, FunctionRef<std::uint64_t()> tree_held);
  void show_total(int device, std::uint64_t bytes);

  // A word that changes with each order for this process (orders.h), and its value at the last take_note().
  std::uint64_t orders() const;
  std::uint64_t heeded() const;
  void take_note(std::uint64_t of_orders);
  // The ordered value: 1 + bytes, kUnordered, or 0 if there is no order.
  std::uint64_t ordered_limit(int device) const;
  std::uint64_t ordered_guarantee(int device) const;
  bool has_ordered_limit(int device) const;  // of the group
  void refuse_guarantee(int device);

  // The guarantee that this process holds, for itself or for a tree.
  std::uint64_t own_guarantee(int device) const;
  // The bytes that this process holds and that no guarantee covers.
  std::uint64_t beyond_guarantee(int device) const;
  // How much is left of the guarantee of this process, or of its tree, which holds `tree_held` bytes. REQUIRES: the
  // file exists.
  std::uint64_t uncovered(std::uint32_t device, std::uint64_t tree_held) const;
  // The present guarantee of this process, or of its tree.
  std::uint64_t guaranteed(int device) const;

  // limit(): if the file was cut short, returns the last limit that was read.
  std::uint64_t limit(int device) const;
  std::uint64_t total(int device) const;
  // The bytes that the limit and a guarantee leave; 0 if the ledger is not usable. `tree_held` is as for reserve().
  // Without a limit, available_below_limit() is UINT64_MAX.
  std::uint64_t available_below_limit(int device, std::uint64_t tree_held = 0) const;
  std::uint64_t available(int device, std::uint64_t tree_held = 0) const;

  // The number of processes in the group, including this one and dead ones whose memory is not reclaimed yet.
  std::uint32_t members() const;

  // True if the group has a limit on any device.
  bool has_limits() const;

  // The members that claim memory on the device, the largest first.
  std::vector<Holder> holders(int device) const;

  void publish(int device, const Published &published);
  // Raises the published peak to the bytes held now. Called before memory is returned without a publication.
  void publish_peak(int device);
  bool shows(int device, std::uint64_t used, std::uint64_t allocations) const;

  // Takes one place in the queue for all the devices and bytes that this process waits for; first come, first served.
  // Other processes see that this one waits.
  using Wants = std::vector<std::pair<int, std::uint64_t>>;
  void queue_up(const Wants &wants);
  void leave_queue();
  // The number of living members that queued up before this one, wait for one of the same devices, and have called
  // ahead() within the last two seconds. Reclaims the memory of dead members.
  std::size_t ahead() noexcept;
  // Records how much memory the driver itself took for a run that came from the queue and has ended.
  void learn_overhead(int device, std::uint64_t bytes);
  std::uint64_t learnt_overhead(int device) const;

  // Shows other members that this process has a context on the device and may come to hold memory there.
  void show_presence(int device);
  // The number of other members that have shown presence on the device, or hold or held memory there.
  std::uint64_t neighbours(int device) const;

  // Shows other members that an allocation is waiting for `bytes`; 0: no allocation waits any more.
  void show_waiting(int device, std::uint64_t bytes);

  // Tells the other members how many bytes of the device this one lacks, because they may hold unused memory.
  void want(int device, std::uint64_t bytes);
  // The last wish of any member, as a word that differs from that of the wish before; 0 if there was no wish.
  // wished_by_another(): the bytes in such a word; 0 if the wish is this member's own.
  std::uint64_t last_wish(int device) const;
  std::uint64_t wished_by_another(std::uint64_t wish) const;
  // A word that changes with every wish, on any device.
  [[nodiscard]] std::uint32_t wishes() const;
  // Sleeps until wishes() differs from `seen`, but for at most `ns`. `for_ever`: the file is lost, so no wish can wake
  // any sleeper any more.
  enum class Woken { by_wish, by_time, for_ever };
  [[nodiscard]] Woken wait_for_wish(std::uint32_t seen, std::uint64_t ns) const;
  // Wakes the sleepers just as a wish would.
  void wake_sleepers() const;
  // The memory that another member holds beyond its program's blocks. `bytes` is an upper bound, because the published
  // use may be off. is_stopped() recognises only members in this PID namespace. Stopped processes return no memory.
  struct Idle {
    std::uint32_t slot = 0;
    std::uint64_t life = 0;
    std::uint64_t operation = 0;  // its last operation on the device; changes when memory is taken or returned
    std::uint64_t bytes = 0;
    int pid = 0;
    bool operator==(const Idle &) const = default;
    bool is_stopped() const;
    // True if the member's thread that returns memory is running or waiting for a processor.
    bool is_giving() const;
  };
  [[nodiscard]] std::vector<Idle> idle(int device) const;
  // The idle bytes of all other members together.
  std::uint64_t surplus(int device) const { return surplus_of(device, Bound::published); }
  // A lower bound for the part of surplus() that is in granules, which can be returned whatever the device is doing.
  std::uint64_t surplus_in_granules(int device) const { return surplus_of(device, Bound::in_granules); }

  // Reclaims the memory of dead members, and recomputes the limit of the device from the living members if it is wrong.
  void reclaim_from_dead(int device) noexcept;
  // Also reclaims. Returns true if any process found, within the last `seconds`, that a member holding memory of the
  // device had died, so the driver may not have freed all of that memory yet.
  bool member_died_within(int device, std::uint64_t seconds) noexcept;
  // The problem with the group's file, and its consequence. Empty if there is no problem or if it was reported before.
  std::string trouble();

 private:
  Membership(GroupFile file, std::uint32_t slot, GroupKind kind, std::string name, LifeProbe probe,
             const GuaranteeHolder &holder);
  // How idle bytes are counted: as published, as an upper bound, or only those that can surely be returned because they
  // are in granules.
  enum class Bound { published, most, in_granules };
  std::uint64_t surplus_of(int device, Bound bound) const;
  // `operation`, if given, receives the number of the member's last operation.
  std::uint64_t idle_of(std::uint32_t slot, std::uint32_t device, Bound bound,
                        std::uint64_t *operation = nullptr) const;
  struct Own;
  struct Change {
    std::uint64_t add = 0, subtract = 0;  // added to or subtracted from what the process holds
    bool limited = false;
    std::uint64_t tree_held = 0;  // before the change
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

  struct Own {  // the state from which the next operation on one device starts
    std::uint64_t operation = 0;
    std::uint64_t claimed = 0;
    std::uint64_t guarantee = 0;  // the part of the claim that is the guarantee
    std::uint64_t covered = 0;    // bytes held under a guarantee, without a claim of their own
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
  // Serialises the operations of the slot. It is held for a few atomic exchanges, never across a system call.
  mutable RankedMutex mutex_{Rank::kMembership};
  Own own_[shared::kDevices] GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> heeded_{0};  // the last value that take_note() received
  std::atomic<std::uint32_t> cursor_{0};
  mutable std::array<std::atomic<std::uint64_t>, shared::kDevices> seen_limits_{};
  const std::uint64_t moment_;                         // in ticks: the least time between two calls of look()
  mutable std::atomic<std::uint64_t> whole_until_{0};  // in ticks: look() is not called before then
  mutable std::atomic<bool> lost_{false};              // the file was cut short: its pages must not be touched any more
  std::atomic<bool> removed_{false};                   // the file was removed from its folder
  std::atomic<bool> trouble_said_{false};
};

// The number in the name of a tree; 0 if the group is not a tree.
std::uint64_t tree_number(GroupKind kind, const std::string &name);

// The name of the group of all processes in this PID namespace that state the container limit `stated`.
std::string container_group_name(const std::string &stated);

// The file name of a group, and the group that a file name means. Returns false if `file` is no group's file name.
std::string file_name(GroupKind kind, const std::string &name);
bool group_of_file(const std::string &file, GroupKind &kind, std::string &name);

// The group's name in a message.
std::string group_label(GroupKind kind, const std::string &name);

}  // namespace ration::ledger

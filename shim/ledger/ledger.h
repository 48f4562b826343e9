// Who holds how much: in this process one account a device, under its limit, and in every group that the process is in.
// Layer: ledger (a leaf). Threads: an account's call is safe from any thread; joining is the builder's alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ledger/membership.h"

namespace ration::ledger {

// Devices that one process can hold memory on. More than any machine has: 16 GPUs of 7 MIG slices each.
inline constexpr int kMaxDevices = 128;

// Whether a refusal comes at once, or only after the dead of the groups gave back what they held (some system calls a
// member).
enum class Effort { kAtOnce, kLookForDead };

// Bytes of one device. Reserve first, then act, then commit what it really took or release it: at no moment do
// reserved and committed bytes together exceed the limit, nor those of a group's members its limit.
class Account {
 public:
  // No limit until one is set. Lowering it below what is held refuses everything until enough was released.
  void set_limit(std::uint64_t bytes);
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Counts in a group too from now on, with what is charged by now. False: it is in too many. REQUIRES: one thread at a
  // time.
  bool share(Membership *membership, int device);
  bool is_shared_with(const Membership *membership) const;
  // While a group that was asked for cannot be had everything is refused.
  void close(bool closed = true) { closed_.store(closed, std::memory_order_relaxed); }

  [[nodiscard]] ReserveOutcome reserve(std::uint64_t bytes, Effort effort = Effort::kLookForDead);
  // Turns a reservation into `actual_bytes` held. Fewer than reserved gives the rest back. More is the caller's to
  // reserve before: REQUIRES actual_bytes <= reserved_bytes.
  void commit(std::uint64_t reserved_bytes, std::uint64_t actual_bytes);
  // Gives back bytes that were reserved or committed.
  void release(std::uint64_t bytes);
  // Takes bytes that are gone already (a context's own memory), whatever the limits say.
  void charge(std::uint64_t bytes);

  // Reserved and committed bytes.
  std::uint64_t charged() const { return charged_.load(std::memory_order_relaxed); }
  // What could still be reserved; 0 when more than a limit is held.
  std::uint64_t available() const;
  // The same for the groups that have a limit alone; UINT64_MAX: none has.
  std::uint64_t group_available() const;

  // The group that leaves least, and this device in it; nullptr: in none.
  Membership *tightest(int &device) const;
  // Gives back what the dead held in every group that has a limit here.
  void look_for_dead() noexcept;
  // Looks for the dead in all of them. True: one who held memory here died within the last seconds, so that the device
  // may be about to get it back.
  bool somebody_died_within(std::uint64_t seconds) noexcept;

  // Figures for others to see. What is used may be off by the larger of 1 MiB and a 64th of what is charged before it
  // is told again. `has_outgrown` and `most_untold_fall` are asked before a pool is hit: what would take the use
  // further off than that has to tell, so it is no hit.
  bool has_outgrown(std::uint64_t used) const {
    return used > told_used_.load(std::memory_order_relaxed) + tell_span_.load(std::memory_order_relaxed);
  }
  bool is_worth_telling(std::uint64_t used) const {
    return has_outgrown(used) ||
           told_used_.load(std::memory_order_relaxed) > used + tell_span_.load(std::memory_order_relaxed);
  }
  // From `used` down; 0: it is to be told already.
  std::uint64_t most_untold_fall(std::uint64_t used) const {
    const std::uint64_t told = told_used_.load(std::memory_order_relaxed);
    const std::uint64_t span = tell_span_.load(std::memory_order_relaxed);
    if (used > told + span) {
      return 0;
    }
    if (told <= span) {
      return UINT64_MAX;
    }
    const std::uint64_t least = told - span;
    return used > least ? used - least : 0;
  }
  void tell(const Told &told);
  void want_telling();

 private:
  static constexpr int kMostShares = 16;
  static constexpr std::uint64_t kLeastTellSpan = 1U << 20U;
  static constexpr std::uint64_t kNeverTell = UINT64_MAX / 2;

  struct Share {
    Membership *membership;
    int device;
  };
  int shares() const { return share_count_.load(std::memory_order_acquire); }  // pairs with share()
  bool reserve_own(std::uint64_t bytes);

  // One word is the whole truth, so its order against other memory does not matter: relaxed throughout.
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> limit_{UINT64_MAX};
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> told_used_{0};
  std::atomic<std::uint64_t> tell_span_{kNeverTell};
  Share shares_[kMostShares] = {};
  std::atomic<int> share_count_{0};
};

class Ledger {
 public:
  // REQUIRES 0 <= device < kMaxDevices.
  Account &account(int device) { return accounts_[device]; }
  const Account &account(int device) const { return accounts_[device]; }

  // Joins; the membership stays for good. nullptr: `problem` says why.
  Membership *join(const std::string &state_folder, GroupKind kind, const std::string &name, std::string &problem);

 private:
  Account accounts_[kMaxDevices];
  ProcessIdentity process_;
  std::vector<std::unique_ptr<Membership>> memberships_;  // fixed before the first reservation
};

}  // namespace ration::ledger

// A SharedPool that has a test's upstream and the interface of a Pool.
#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>

#include "host_memory.h"
#include "pool/shared_pool.h"
#include "pool_model.h"

namespace ration::pool {

// Grows within a budget, keeps retired blocks until they are clean, and reports every step to the model.
class BackedPool final : private Upstream {
 public:
  BackedPool(PoolModel &model, std::uint64_t budget) : model_(model), budget_(budget) {}

  AllocateOutcome allocate(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool_.allocate(bytes, *this);
    if (outcome.kind != AllocateOutcome::Kind::kNoRoom || bytes > SharedPool::kMostBytes) return outcome;
    if (!quarantine_.empty()) note("refused before everything was clean");
    if (Pool::slab_bytes_for(bytes) <= budget_) note("refused although the pool could have grown");
    return outcome;
  }
  FreeOutcome free(Address address) { return pool_.free(address); }
  FreeOutcome retire(Address address) {
    const FreeOutcome outcome = pool_.retire(address);
    const Plenty plenty(host_memory::kPlenty);
    if (outcome) quarantine_.push_back(address);
    return outcome;
  }
  FreeOutcome reclaim(Address address) {
    const FreeOutcome outcome = pool_.reclaim(address);
    if (outcome) std::erase(quarantine_, address);
    clean_ = std::min(clean_, quarantine_.size());
    return outcome;
  }
  [[nodiscard]] std::optional<Block> find(Address address) const { return pool_.find(address); }
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const { return pool_.slab_of(address); }
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const {
    return pool_.live_blocks(from, blocks, count);
  }
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const { return pool_.slabs(from, slabs, count); }
  AddSlabOutcome add_slab(const Slab &slab) { return pool_.add_slab(slab); }
  bool reserve(std::size_t blocks) { return pool_.reserve(blocks); }
  [[nodiscard]] Statistics statistics() { return pool_.statistics(); }
  [[nodiscard]] std::string check_invariants() const { return wrong_.empty() ? pool_.check_invariants() : wrong_; }

  std::string give_back() {
    const std::uint64_t before = budget_;
    if (pool_.give_back(*this) != budget_ - before) return "returned a wrong number of bytes";
    for (const auto &[address, slab] : model_.slabs()) {
      if (!model_.occupied_in(slab)) return "kept a slab that is wholly free";
    }
    return "";
  }
  std::string become_clean(std::size_t blocks) {
    clean_ = std::min(clean_ + blocks, quarantine_.size());
    return "";
  }

 private:
  // Far from the slabs that a test adds itself.
  static constexpr Address kBase = Address{1} << 56;
  static constexpr Address kEnd = kBase + (Address{1} << 55);
  static constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

  // While a Plenty exists, the test's own requests for host memory succeed.
  using Plenty = host_memory::Limit;

  bool collect() noexcept override {
    const Plenty plenty(host_memory::kPlenty);
    const std::size_t before = quarantine_.size();
    for (; clean_ != 0 && !quarantine_.empty(); --clean_) reclaim_oldest();
    return quarantine_.size() != before;
  }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    const Plenty plenty(host_memory::kPlenty);
    if (wish.bytes > budget_) (void)pool_.give_back(*this);
    if (wish.bytes > budget_) return {};
    const std::uint64_t bytes = std::min({budget_, wish.bytes + wish.bytes % 7 * kMiB, kMaximumBytes});
    budget_ -= bytes;
    ++slabs_;
    const Slab slab{place_for(bytes), bytes, ~slabs_};
    if (const std::string wrong = model_.seen_add_slab(slab, AddSlabOutcome::kAdded); !wrong.empty()) note(wrong);
    return {slab};
  }
  void shrink(const Slab &slab) noexcept override {
    const Plenty plenty(host_memory::kPlenty);
    if (model_.occupied_in(slab)) note("gave back a slab that is in use");
    if (model_.slabs().count(slab.address) == 0) note("gave back an unknown slab");
    model_.lose_slab(slab.id);
    budget_ += slab.bytes;
  }
  bool wait() noexcept override {
    const Plenty plenty(host_memory::kPlenty);
    if (quarantine_.empty()) return false;
    reclaim_oldest();
    return true;
  }

  // The place for a new slab: after the last one or, if a slab overlaps that place, after that slab. Some slabs are
  // adjacent. All start at a unit, as a pool requires of an upstream that gives no more than was asked for.
  Address place_for(std::uint64_t bytes) {
    const std::uint64_t gap = slabs_ % 3 * 512;
    Address from = next_ + bytes < kEnd ? next_ : kBase;
    for (;;) {
      const auto above = model_.slabs().lower_bound(from + bytes);
      if (above == model_.slabs().begin()) break;
      const Slab &below = std::prev(above)->second;
      if (below.address + below.bytes <= from) break;
      from = (below.address + below.bytes + 511) / 512 * 512 + gap;
    }
    next_ = (from + bytes + 511) / 512 * 512 + gap;
    return from;
  }

  void reclaim_oldest() {
    const Address address = quarantine_.front();
    quarantine_.pop_front();
    if (std::string wrong = model_.seen_reclaim(address, pool_.reclaim(address)); !wrong.empty()) note(wrong);
  }
  void note(const std::string &wrong) { wrong_ = wrong; }

  SharedPool pool_;
  PoolModel &model_;
  std::uint64_t budget_;
  std::uint64_t slabs_ = 0;
  Address next_ = kBase;
  std::deque<Address> quarantine_;
  std::size_t clean_ = 0;
  std::string wrong_;  // an error that an upstream call cannot return
};

}  // namespace ration::pool

// Pools with one flaw each, to prove that the model detects it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "pool/pool.h"

namespace ration::pool {

// Each flaw breaks one guarantee once the pool is in use. The model must detect all flaws.
enum class Flaw {
  kTwoOwners,
  kUnaligned,
  kOffsetZero,
  kOtherSize,
  kRefuses,
  kForgetsFree,
  kFreesTwice,
  kLosesInterior,
  kReclaimsAtOnce,
  kRetiresTwice,
  kFindsRetired,
  kListsRetired,
  kForgetsRequest,
  kTakesAnySlab,
  kRefusesSlabs,
  kForgetsSlab,
  kListsTooFewSlabs,
  kKeepsSlabs,
  kFindsBusySlabFree,
  kFindsNoSlabFree,
  kMiscountsFree
};
inline constexpr Flaw kLastFlaw = Flaw::kMiscountsFree;

class FlawedPool {
 public:
  explicit FlawedPool(Flaw flaw) : flaw_(flaw) {}

  AllocateOutcome allocate(std::uint64_t bytes) {
    AllocateOutcome outcome = pool_.allocate(bytes);
    if (!outcome || ++allocated_ < 20) return outcome;
    if (flaw_ == Flaw::kTwoOwners && pool_.find(before_)) outcome.block.address = before_;
    if (flaw_ == Flaw::kUnaligned) outcome.block.address -= 256;
    if (flaw_ == Flaw::kOffsetZero) outcome.block.address = pool_.slab_of(outcome.block.address)->address;
    if (flaw_ == Flaw::kOtherSize) outcome.block.bytes += kUnitBytes;
    if (flaw_ == Flaw::kForgetsRequest) outcome.block.requested = outcome.block.bytes;
    if (flaw_ == Flaw::kRefuses) outcome.kind = AllocateOutcome::Kind::kNoRoom;
    before_ = outcome.block.address;
    return outcome;
  }
  FreeOutcome free(Address address) {
    if (flaw_ == Flaw::kForgetsFree)
      return {FreeOutcome::Kind::kFreed, pool_.find(address) ? pool_.find(address)->bytes : 0};
    const FreeOutcome outcome = pool_.free(address);
    if (flaw_ == Flaw::kFreesTwice && !outcome) return {FreeOutcome::Kind::kFreed, 512};
    return outcome;
  }
  FreeOutcome retire(Address address) {
    const std::optional<Block> block = pool_.find(address);
    const FreeOutcome outcome = flaw_ == Flaw::kReclaimsAtOnce ? pool_.free(address) : pool_.retire(address);
    if (outcome) retired_[address] = *block;
    if (flaw_ == Flaw::kRetiresTwice && !outcome) return {FreeOutcome::Kind::kFreed, 512};
    return outcome;
  }
  FreeOutcome reclaim(Address address) {
    retired_.erase(address);
    return pool_.reclaim(address);
  }
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const {
    const std::size_t found = pool_.live_blocks(from, blocks, count);
    if (flaw_ != Flaw::kListsRetired || retired_.empty() || found == 0) return found;
    blocks[found - 1] = retired_.begin()->second;
    return found;
  }
  std::optional<Block> find(Address address) const {
    const std::optional<Block> found = pool_.find(address);
    if (const auto retired = retired_.find(address); flaw_ == Flaw::kFindsRetired && retired != retired_.end()) {
      return retired->second;
    }
    return flaw_ == Flaw::kLosesInterior && found && found->address != address ? std::nullopt : found;
  }
  std::optional<Slab> slab_of(Address address) {
    const std::optional<Slab> found = pool_.slab_of(address);
    return flaw_ == Flaw::kForgetsSlab && pool_.statistics().slabs > 1 ? std::nullopt : found;
  }
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const {
    const std::size_t found = pool_.slabs(from, slabs, count);
    return flaw_ == Flaw::kListsTooFewSlabs && found > 1 ? found - 1 : found;
  }
  AddSlabOutcome add_slab(const Slab &slab) {
    if (flaw_ == Flaw::kRefusesSlabs && pool_.statistics().slabs > 1) return AddSlabOutcome::kOverlaps;
    const AddSlabOutcome outcome = pool_.add_slab(slab);
    return flaw_ == Flaw::kTakesAnySlab ? AddSlabOutcome::kAdded : outcome;
  }
  bool remove_slab(std::uint64_t id) { return flaw_ != Flaw::kKeepsSlabs && pool_.remove_slab(id); }
  std::optional<Slab> wholly_free_slab() const {
    Slab first{};
    if (flaw_ == Flaw::kFindsBusySlabFree && pool_.slabs(0, &first, 1) == 1) return first;
    return flaw_ == Flaw::kFindsNoSlabFree ? std::nullopt : pool_.wholly_free_slab();
  }
  bool reserve(std::size_t blocks) { return pool_.reserve(blocks); }
  Statistics statistics() {
    Statistics statistics = pool_.statistics();
    if (flaw_ == Flaw::kMiscountsFree) statistics.free_bytes += statistics.slabs > 1 ? 512 : 0;
    return statistics;
  }
  std::string check_invariants() const { return pool_.check_invariants(); }

 private:
  Flaw flaw_;
  Pool pool_;
  int allocated_ = 0;
  Address before_ = 0;
  std::map<Address, Block> retired_;
};

}  // namespace ration::pool

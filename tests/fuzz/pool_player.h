// Plays commands against a pool and the trivially correct model, and compares the two after every step.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "command.h"
#include "pool/pool.h"
#include "pool_model.h"

namespace ration::pool {

// AnyPool: Pool, or a type with its interface. Missing functions are skipped (a SharedPool has no remove_slab).
template <class AnyPool>
class PoolPlayer {
 public:
  static constexpr Address kBase = 0x7f0000000000;
  static constexpr std::uint64_t kSlabStride = 2 * kMaximumBytes;

  PoolPlayer(AnyPool &pool, PoolModel &model) : pool_(pool), model_(model) {}

  // Returns the error, or an empty string.
  std::string play(const Command &command) {
    std::string wrong = obey(command);
    if (wrong.empty()) wrong = pool_.check_invariants();
    // Is not called after every command, because statistics() flushes the cached hole.
    if (wrong.empty() && command.number % 3 == 0) wrong = model_.seen_statistics(pool_.statistics());
    return wrong;
  }

  std::string play(const std::vector<Command> &commands) {
    for (const Command &command : commands) {
      if (std::string wrong = play(command); !wrong.empty()) return wrong;
    }
    return "";
  }

  // Empties the pool and checks that nothing is left.
  std::string finish() {
    std::string wrong;
    for (std::uint64_t step = 0; wrong.empty() && !newest_last_.empty(); ++step) wrong = play(Command{kFree, step * 7});
    while (wrong.empty() && !model_.retired().empty()) wrong = play(Command{kReclaim, 0});
    if constexpr (requires { pool_.give_back(); }) {
      if (wrong.empty()) wrong = play(Command{kGiveBack, 0});
    }
    if constexpr (requires { pool_.remove_slab(0); }) {
      while (wrong.empty() && !model_.slabs().empty()) wrong = play(Command{kRemoveSlab, 0});
    }
    if (wrong.empty() && pool_.statistics().holes + pool_.statistics().slabs != 0) wrong = "is not empty in the end";
    return wrong;
  }

 private:
  using enum Command::Kind;

  template <class Map>
  static auto pick(const Map &map, std::uint64_t number) {
    return std::next(map.begin(), static_cast<std::ptrdiff_t>(number % map.size()));
  }

  // An address in, at the edge of or next to a block or a slab.
  [[nodiscard]] Address anything(std::uint64_t number) const {
    const std::uint64_t offset = number % 8;
    const auto near = [offset](Address address, std::uint64_t bytes) {
      const std::uint64_t offsets[] = {
          0, 1, 512, bytes - 1, bytes, bytes + 511, ~std::uint64_t{0}, ~std::uint64_t{511}};
      return address + offsets[offset];
    };
    const std::uint64_t among = number / 8 % 8;
    if (among == 0 && !model_.slabs().empty()) {
      const Slab &slab = pick(model_.slabs(), number / 64)->second;
      return near(slab.address, slab.bytes);
    }
    const PoolModel::Occupants &blocks = among < 3 ? model_.retired() : model_.live();
    if (blocks.empty()) return kBase + number % 4096;
    const auto &[address, occupant] = *pick(blocks, number / 64);
    return near(address, occupant.bytes);
  }

  [[nodiscard]] Address chosen(std::uint64_t number) const {
    return newest_last_[newest_last_.size() - 1 - number % newest_last_.size()];
  }

  std::string allocate(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool_.allocate(bytes);
    if (outcome) newest_last_.push_back(outcome.block.address);
    return model_.seen_allocate(bytes, outcome);
  }
  std::string free(Address address) {
    std::erase(newest_last_, address);
    return model_.seen_free(address, pool_.free(address));
  }
  std::string retire(Address address) {
    std::erase(newest_last_, address);
    return model_.seen_retire(address, pool_.retire(address));
  }
  std::string reclaim(Address address) { return model_.seen_reclaim(address, pool_.reclaim(address)); }

  std::string add_slab(Address address, std::uint64_t bytes) {
    if (model_.slabs().size() >= 8) return "";
    const Slab slab{address, bytes, ++slabs_};
    return model_.seen_add_slab(slab, pool_.add_slab(slab));
  }
  std::string add_slab_beside(std::uint64_t number) {
    if (model_.slabs().empty()) return "";
    const Slab &other = pick(model_.slabs(), number / 8)->second;
    const std::uint64_t bytes = 1 + number / 64 % 4096;
    const Address places[] = {other.address + other.bytes,
                              other.address + other.bytes - 1,
                              other.address - bytes,
                              other.address - bytes + 1,
                              other.address,
                              other.address + 512,
                              ~Address{0} - bytes - 1024,
                              ~Address{0} - bytes + 2};
    return add_slab(places[number % 8], bytes);
  }
  std::string remove_slab(std::uint64_t number) {
    if (model_.slabs().empty()) return "";
    const Slab slab = pick(model_.slabs(), number)->second;
    const bool busy = model_.occupied_in(slab);
    if (pool_.remove_slab(~slab.id)) return "removed an unknown slab";
    if (pool_.remove_slab(slab.id) == busy) return "removed a slab in use, or kept a free one";
    if (!busy) model_.lose_slab(slab.id);
    return "";
  }

  std::string list_live(std::uint64_t number) {
    std::vector<Block> blocks(number % 40);
    const std::size_t count = blocks.size();
    const Address from = anything(number / 8);
    blocks.resize(pool_.live_blocks(from, blocks.data(), count));
    return model_.seen_live_blocks(from, count, blocks);
  }
  std::string list_slabs(std::uint64_t number) {
    std::vector<Slab> slabs(number % 10);
    const std::size_t count = slabs.size();
    const Address from = number % 3 == 0 ? 0 : anything(number / 8);
    slabs.resize(pool_.slabs(from, slabs.data(), count));
    return model_.seen_slabs(from, count, slabs);
  }
  std::string find(Address address) {
    std::string wrong = model_.seen_find(address, pool_.find(address));
    return wrong.empty() ? model_.seen_slab_of(address, pool_.slab_of(address)) : wrong;
  }

  std::string obey(const Command &command) {
    const std::uint64_t number = command.number;
    switch (command.kind) {
      case kAllocate:
        return allocate(number);
      case kAllocateLargest: {
        const std::uint64_t largest = pool_.statistics().largest_hole;
        if (number >= Command::kMore) return allocate(largest + (number - Command::kMore) * 256 + 1);
        return allocate(largest - std::min(largest, number * 512));
      }
      case kFree:
        return newest_last_.empty() ? "" : free(chosen(number));
      case kRetire:
        return newest_last_.empty() ? "" : retire(chosen(number));
      case kReclaim:
        return model_.retired().empty() ? "" : reclaim(pick(model_.retired(), number)->first);
      case kFreeAnything:
        return free(anything(number));
      case kRetireAnything:
        return retire(anything(number));
      case kReclaimAnything:
        return reclaim(anything(number));
      case kFindAnything:
        return find(anything(number));
      case kListLive:
        return list_live(number);
      case kAddSlab:
        return add_slab(kBase + slabs_ % 64 * kSlabStride + number % 700, number);
      case kAddSlabBeside:
        return add_slab_beside(number);
      case kListSlabs:
        return list_slabs(number);
      case kReserve:
        return pool_.reserve(number % 5000) ? "" : "had no host memory";
      case kRemoveSlab:
        if constexpr (requires { pool_.remove_slab(0); }) return remove_slab(number);
        return "";
      case kFreeSlab:
        if constexpr (requires { pool_.wholly_free_slab(); }) {
          return model_.seen_wholly_free_slab(pool_.wholly_free_slab());
        }
        return "";
      case kGiveBack:
        if constexpr (requires { pool_.give_back(); }) return pool_.give_back();
        return "";
      case kBecomeClean:
        if constexpr (requires { pool_.become_clean(0); }) return pool_.become_clean(number % 50);
        return "";
    }
    return "no such command";
  }

  AnyPool &pool_;
  PoolModel &model_;
  std::vector<Address> newest_last_;  // live blocks
  std::uint64_t slabs_ = 0;           // number so far, including rejected ones
};

}  // namespace ration::pool

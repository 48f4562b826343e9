// Random commands against the pool and a trivially correct model, invariants checked after every step.
#include <rapidcheck.h>

#include <iterator>
#include <ostream>
#include <vector>

#include "catch.h"
#include "flawed_pool.h"
#include "pool_model.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kSlabStride = std::uint64_t{1} << 40;

struct Command {
  enum class Kind {
    kAllocate,
    kFree,
    kFreeAnything,
    kFind,
    kRetire,
    kReclaim,
    kRetireAnything,
    kReclaimAnything,
    kListLive,
    kAddSlab,
    kRemoveSlab,
    kAllocateLargest
  };
  Kind kind;
  std::uint64_t number;  // a size, or which block or slab
};

std::ostream &operator<<(std::ostream &out, const Command &command) {
  return out << '{' << static_cast<int>(command.kind) << ", " << command.number << '}';
}

// Sizes of every order of magnitude, many of them alike, and a few that no pool can meet.
rc::Gen<std::uint64_t> any_size() {
  const auto of_order =
      rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 33), rc::gen::arbitrary<std::uint32_t>()), [](const auto &pair) {
        const auto [order, noise] = pair;
        return (std::uint64_t{1} << order) + noise % (std::uint64_t{1} << order);
      });
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{4, of_order},
       {4, rc::gen::element<std::uint64_t>(512, 4096, 65536, 1 << 20, 33 << 20)},
       {6, rc::gen::inRange<std::uint64_t>(0, 20'000)},
       {1, rc::gen::element<std::uint64_t>(0, 1, ~std::uint64_t{0}, kMaximumBytes)}});
}

rc::Gen<Command> any_command(int frees) {
  using Kind = Command::Kind;
  const auto with = [](Kind kind, const rc::Gen<std::uint64_t> &number) {
    return rc::gen::map(number, [kind](std::uint64_t value) { return Command{kind, value}; });
  };
  const auto any = rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
  return rc::gen::weightedOneOf<Command>({{60, with(Kind::kAllocate, any_size())},
                                          {static_cast<std::size_t>(frees) / 3, with(Kind::kFree, any)},
                                          {static_cast<std::size_t>(frees) * 2 / 3, with(Kind::kRetire, any)},
                                          {static_cast<std::size_t>(frees) * 3 / 5, with(Kind::kReclaim, any)},
                                          {3, with(Kind::kFreeAnything, any)},
                                          {3, with(Kind::kRetireAnything, any)},
                                          {3, with(Kind::kReclaimAnything, any)},
                                          {2, with(Kind::kListLive, any)},
                                          {5, with(Kind::kFind, any)},
                                          {1, with(Kind::kAddSlab, rc::gen::inRange<std::uint64_t>(0, 1 << 20))},
                                          {1, with(Kind::kRemoveSlab, any)},
                                          {1, with(Kind::kAllocateLargest, any)}});
}

template <class Map>
auto pick(const Map &map, std::uint64_t number) {
  return std::next(map.begin(), static_cast<std::ptrdiff_t>(number % map.size()));
}

// Somewhere in, at the edge of or beside what is live or retired.
Address near_something(const PoolModel &model, std::uint64_t number) {
  const PoolModel::Occupants &among = (number >> 3) % 3 == 0 ? model.retired() : model.live();
  if (among.empty()) return kBase + number % 4096;
  const auto &[address, occupant] = *pick(among, number >> 8);
  const std::uint64_t bytes = occupant.bytes;
  const std::uint64_t offsets[] = {0, 1, 512, bytes - 1, bytes, bytes + 511, ~std::uint64_t{0}, ~std::uint64_t{511}};
  return address + offsets[number % 8];
}

// A pool of this type and the model meet each command; what went wrong first, or an empty string.
template <class AnyPool>
std::string run(AnyPool &pool, const std::vector<Command> &commands) {
  PoolModel model;
  std::uint64_t slabs = 0;
  const auto add_slab = [&](std::uint64_t bytes) {
    const Slab slab{kBase + slabs * kSlabStride + bytes % 700, bytes, slabs};
    ++slabs;
    return pool.add_slab(slab) == AddSlabOutcome::kAdded ? model.seen_slab(slab) : "";
  };
  const auto allocate = [&](std::uint64_t bytes) { return model.seen_allocate(bytes, pool.allocate(bytes)); };
  const auto free = [&](Address address) { return model.seen_free(address, pool.free(address)); };
  const auto retire = [&](Address address) { return model.seen_retire(address, pool.retire(address)); };
  const auto reclaim = [&](Address address) { return model.seen_reclaim(address, pool.reclaim(address)); };
  const auto obey = [&](const Command &command) -> std::string {
    switch (command.kind) {
      case Command::Kind::kAllocate:
        return allocate(command.number);
      case Command::Kind::kFree:
        return model.live().empty() ? "" : free(pick(model.live(), command.number)->first);
      case Command::Kind::kFreeAnything:
        return free(near_something(model, command.number));
      case Command::Kind::kFind: {
        const Address address = near_something(model, command.number);
        return model.seen_find(address, pool.find(address));
      }
      case Command::Kind::kRetire:
        return model.live().empty() ? "" : retire(pick(model.live(), command.number)->first);
      case Command::Kind::kReclaim:
        return model.retired().empty() ? "" : reclaim(pick(model.retired(), command.number)->first);
      case Command::Kind::kRetireAnything:
        return retire(near_something(model, command.number));
      case Command::Kind::kReclaimAnything:
        return reclaim(near_something(model, command.number));
      case Command::Kind::kListLive: {
        std::vector<Block> blocks(command.number % 40);
        const std::size_t count = blocks.size();
        const Address from = near_something(model, command.number);
        blocks.resize(pool.live_blocks(from, blocks.data(), count));
        return model.seen_live_blocks(from, count, blocks);
      }
      case Command::Kind::kAddSlab:
        return slabs < 8 ? add_slab(command.number) : "";
      case Command::Kind::kRemoveSlab: {
        if (model.slabs().empty()) return "";
        const Slab slab = pick(model.slabs(), command.number)->second;
        const bool busy = model.occupied_in(slab);
        if (pool.remove_slab(slab.id) == busy) return "let go of a busy slab, or kept a free one";
        if (!busy) model.lose_slab(slab.id);
        return "";
      }
      case Command::Kind::kAllocateLargest:
        return allocate(pool.statistics().largest_hole);
    }
    return "no such command";
  };
  add_slab(std::uint64_t{1} << 31);
  for (const Command &command : commands) {
    std::string wrong = obey(command);
    if (wrong.empty()) wrong = pool.check_invariants();
    if (wrong.empty()) wrong = model.seen_statistics(pool.statistics());
    if (!wrong.empty()) return wrong;
  }
  return "";
}

bool holds(int frees, int most_commands) {
  return rc::check("the pool answers as the model does", [=] {
    const int count = *rc::gen::inRange(0, most_commands);
    const auto commands =
        *rc::gen::container<std::vector<Command>>(static_cast<std::size_t>(count), any_command(frees));
    Pool pool;
    const std::string wrong = run(pool, commands);
    if (!wrong.empty()) RC_FAIL(wrong);
  });
}

}  // namespace

TEST_CASE("a pool that mostly fills up answers as the model does") {
  CHECK(holds(20, 8000));
}

TEST_CASE("a pool that hovers about full answers as the model does") {
  CHECK(holds(55, 3000));
}

TEST_CASE("a pool that empties again and again answers as the model does") {
  CHECK(holds(90, 600));
}

TEST_CASE("a long life leaves the pool as the model has it", "[.long]") {
  CHECK(holds(50, 30'000));
}

TEST_CASE("the model catches every broken pool") {
  for (int flaw = 0; flaw <= static_cast<int>(Flaw::kForgetsRequest); ++flaw) {
    CAPTURE(flaw);
    // Enough of everything for each flaw to show; fixed, because this is about the model and not about the pool.
    using Kind = Command::Kind;
    const Kind others[] = {Kind::kFree,     Kind::kFreeAnything,   Kind::kRetire,          Kind::kFind,
                           Kind::kRetire,   Kind::kRetireAnything, Kind::kReclaimAnything, Kind::kFind,
                           Kind::kListLive, Kind::kReclaim};
    std::vector<Command> commands;
    for (std::uint64_t step = 0; step < 2000; ++step) {
      const Kind kind = step % 3 != 0 ? Kind::kAllocate : others[step / 3 % std::size(others)];
      commands.push_back({kind, 512 + (step * 2654435761U >> 7) % 50'000});
    }
    Pool sound;
    REQUIRE(run(sound, commands) == "");
    FlawedPool broken(static_cast<Flaw>(flaw));
    CHECK(run(broken, commands) != "");
  }
}

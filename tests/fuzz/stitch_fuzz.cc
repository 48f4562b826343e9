// Random commands against a pool of granules on a device that checks its use, and that refuses calls in between; checks
// the invariants after every step.
#include "catch.h"
#include "gen_commands.h"
#include "pool_checks/granule_program.h"

using namespace ration::pool;
using enum Command::Kind;

namespace {

constexpr std::uint64_t kPage = CheckedDevice::kPage;
constexpr std::uint64_t kPages = 48;

void play(GranuleProgram &program, const Command &command) {
  const std::uint64_t number = command.number;
  switch (command.kind) {
    case kAllocate:
      return program.allocate(number);
    case kFree:
      return program.free(number);
    case kRetire:
      return program.retire(number);
    case kReclaim:
      return program.reclaim(number);
    case kFindAnything:
      return program.find(number);
    case kListLive:
      return program.list();
    case kBecomeClean:  // of the device: refuses
      return program.device.refuse(number % 40, 1 + number / 40 % 4);
    default:
      return;
  }
}

bool holds(std::size_t frees, std::size_t refusals, const rc::Gen<std::uint64_t> &size, int most_commands) {
  const Weights weights = {{60, kAllocate},    {frees * 2 / 3, kFree}, {frees / 3, kRetire},    {frees / 3, kReclaim},
                           {4, kFindAnything}, {1, kListLive},         {refusals, kBecomeClean}};
  const auto commands = gen_commands(most_commands, weights, size, size);
  return rc::check("a pool of granules keeps its books", [&] {
    const std::uint64_t preallocated = *rc::gen::element<std::uint64_t>(0, kPages / 2, 1 * kPages);
    const std::uint64_t each = *rc::gen::inRange<std::uint64_t>(1, 9);
    const std::uint64_t parts = *rc::gen::element<std::uint64_t>(1, 3, kPages + 0);
    GranuleProgram program(kPages);
    program.device.provide_parts_of(parts * kPage);
    std::string wrong = program.open(preallocated, each) ? "" : "was not opened";
    for (const Command &command : *commands) {
      if (wrong.empty()) play(program, command);
      if (wrong.empty()) wrong = program.wrong();
    }
    program.device.refuse(0, 0);
    if (wrong.empty()) wrong = program.fill();
    if (!wrong.empty()) RC_FAIL(wrong);
  });
}

// Of all kinds, most of a few pages.
rc::Gen<std::uint64_t> any_size() {
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{4, rc::gen::inRange<std::uint64_t>(kPage, 8 * kPage)},
       {3, rc::gen::inRange<std::uint64_t>(0, kPage)},
       {2, rc::gen::element<std::uint64_t>(1 * kPage, 3 * kPage, 5 * kPage / 2, kPage + 512, kPage / 8, 20 * kPage)},
       {1, gen_of_order(28)}});
}
rc::Gen<std::uint64_t> random_size() {
  return rc::gen::inRange<std::uint64_t>(kPage, 12 * kPage);
}
rc::Gen<std::uint64_t> repeated_size() {
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{8, rc::gen::element<std::uint64_t>(3 * kPage / 2, 2 * kPage, 5 * kPage + 512, kPage / 8, kPage / 4)},
       {1, rc::gen::inRange<std::uint64_t>(kPage, 12 * kPage)}});
}

}  // namespace

TEST_CASE("a pool of granules keeps its books and its memory with sizes of all kinds") {
  CHECK(holds(50, 0, any_size(), 1500));
}

TEST_CASE("a pool of granules keeps its books and its memory with random sizes") {
  CHECK(holds(40, 0, random_size(), 800));
}

TEST_CASE("a pool of granules keeps its books and its memory with repeated sizes") {
  CHECK(holds(40, 0, repeated_size(), 1500));
}

TEST_CASE("a pool of granules keeps its books and its memory on a device that refuses calls") {
  CHECK(holds(50, 4, any_size(), 1000));
  CHECK(holds(40, 4, random_size(), 800));
}

TEST_CASE("a pool of granules keeps its books and its memory in long programs", "[.long]") {
  CHECK(holds(50, 0, any_size(), 6000));
  CHECK(holds(40, 0, random_size(), 6000));
  CHECK(holds(40, 1, repeated_size(), 6000));
}

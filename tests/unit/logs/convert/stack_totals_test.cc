#include "logs/convert/stack_totals.h"

#include "../log_text.h"
#include "catch.h"

using namespace ration::logs;
using namespace ration::test;

namespace {

StackTotals totals_of(const std::vector<std::string> &records) {
  StackTotals totals;
  std::istringstream log(log_of(records));
  LogReader reader(log);
  for (Record record; reader.next(record);) {
    totals.add(record);
  }
  totals.finish();
  REQUIRE(reader.problem().empty());
  return totals;
}

std::uint64_t bytes_of_stack(const StackTotals &totals, std::uint64_t stack, Amount amount) {
  std::uint64_t bytes = 0;
  for (const auto &[place, each] : totals.places()) {
    bytes += place.stack == stack ? each.of(amount).bytes : 0;
  }
  return bytes;
}

std::string with_stack(int stack) {
  return R"("src":"driver","stack":)" + std::to_string(stack);
}

}  // namespace

TEST_CASE("stacks that change after the last peak keep what they held at it") {
  const StackTotals totals =
      totals_of({alloc_record(1, 100, with_stack(1)), alloc_record(2, 50, with_stack(2)), free_record(2),
                 alloc_record(3, 30, with_stack(2)), free_record(1), alloc_record(4, 10, with_stack(3))});
  CHECK(bytes_of_stack(totals, 1, Amount::kPeak) == 100);
  CHECK(bytes_of_stack(totals, 2, Amount::kPeak) == 50);
  CHECK(bytes_of_stack(totals, 3, Amount::kPeak) == 0);
  CHECK(bytes_of_stack(totals, 2, Amount::kTotal) == 80);
  CHECK(bytes_of_stack(totals, 1, Amount::kLeaked) == 0);
  CHECK(bytes_of_stack(totals, 2, Amount::kLeaked) == 30);
}

TEST_CASE("a stack that has not changed since the last peak holds what it held at it") {
  const StackTotals totals = totals_of({alloc_record(1, 100, with_stack(1)), free_record(1),
                                        alloc_record(2, 40, with_stack(2)), alloc_record(3, 90, with_stack(3))});
  CHECK(bytes_of_stack(totals, 1, Amount::kPeak) == 0);
  CHECK(bytes_of_stack(totals, 2, Amount::kPeak) == 40);
  CHECK(bytes_of_stack(totals, 3, Amount::kPeak) == 90);
}

TEST_CASE("an address that is allocated again ends the block before, and blocks without a charge count nowhere") {
  const StackTotals totals = totals_of({alloc_record(1, 100, with_stack(1)), alloc_record(1, 20, with_stack(2)),
                                        alloc_record(2, 500, R"("src":"driver","charged":false,"stack":3)")});
  CHECK(bytes_of_stack(totals, 1, Amount::kLeaked) == 0);
  CHECK(bytes_of_stack(totals, 2, Amount::kLeaked) == 20);
  CHECK(bytes_of_stack(totals, 3, Amount::kTotal) == 0);
}

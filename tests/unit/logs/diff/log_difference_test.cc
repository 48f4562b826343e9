#include "logs/diff/log_difference.h"

#include "../log_text.h"
#include "catch.h"

using namespace ration::logs;
using namespace ration::test;

namespace {

bool exceeds(const std::string &growth, std::uint64_t before, std::uint64_t after) {
  const auto read = read_growth(growth);
  REQUIRE(std::holds_alternative<Growth>(read));
  return std::get<Growth>(read).is_exceeded_by({before, after});
}

}  // namespace

TEST_CASE("a peak may grow by exactly what is allowed") {
  CHECK_FALSE(exceeds("10%", 100, 110));
  CHECK(exceeds("10%", 100, 111));
  CHECK_FALSE(exceeds("0%", 100, 100));
  CHECK(exceeds("0%", 100, 101));
  CHECK_FALSE(exceeds("200%", 100, 300));
  CHECK_FALSE(exceeds("0%", 100, 1));
  CHECK_FALSE(exceeds("7", 100, 107));
  CHECK(exceeds("7", 100, 108));
  CHECK(exceeds("1MiB", 0, (1 << 20) + 1));
  CHECK(exceeds("50%", 0, 1));
}

TEST_CASE("what is no growth is refused") {
  for (const char *text : {"", "%", "-1%", "nan%", "inf%", "1%%", "x", "-1"}) {
    INFO(text);
    CHECK(std::holds_alternative<std::string>(read_growth(text)));
  }
}

TEST_CASE("of several processes the sums are compared") {
  std::vector<History> before;
  before.push_back(history_of(log_of({alloc_record(1, 100)})));
  std::vector<History> after;
  for (int bytes : {100, 400}) {
    after.push_back(history_of(log_of({alloc_record(1, bytes), oom_record("limit", 1, 1, 1), kEndRecord})));
  }
  const LogDifference difference = difference_of(before, after);
  REQUIRE(difference.devices.size() == 1);
  CHECK(difference.devices[0].peak == BothFigures{100, 500});
  CHECK(difference.devices[0].refusals == BothFigures{0, 2});
  CHECK(difference.devices[0].callers[0].live == BothFigures{100, 500});
  CHECK_FALSE(difference.before.has_ended);
  CHECK(difference.after.has_ended);
}

TEST_CASE("callers are sorted by what changed most, be it less or more") {
  std::vector<History> before;
  before.push_back(
      history_of(log_of({alloc_record(1, 100), alloc_record(2, 400, R"("src":"driver","kind":"managed")")}), By::size));
  std::vector<History> after;
  after.push_back(history_of(log_of({alloc_record(1, 120), alloc_record(3, 9000)}), By::size));
  const LogDifference difference = difference_of(before, after);
  REQUIRE(difference.devices.size() == 1);
  const auto &callers = difference.devices[0].callers;
  REQUIRE(callers.size() == 3);
  CHECK(std::string(difference.occurrence_of(callers[0])) == "unknown");
  CHECK(callers[0].peak.change() == 9000);
  CHECK(std::string(difference.occurrence_of(callers[1])) == "unknown");
  CHECK(callers[1].peak.change() == -400);
  CHECK(callers[2].peak.change() == 20);
  CHECK(std::string(difference.occurrence_of(callers[2])) == "both");
}

TEST_CASE("a caller is new or gone only if the other side's logs are whole") {
  std::vector<History> before;
  before.push_back(history_of(log_of({alloc_record(1, 100), kEndRecord}), By::size));
  std::vector<History> after;
  after.push_back(history_of(log_of({alloc_record(3, 9000)}), By::size));
  const LogDifference difference = difference_of(before, after);
  REQUIRE(difference.devices[0].callers.size() == 2);
  CHECK(std::string(difference.occurrence_of(difference.devices[0].callers[0])) == "new");
  CHECK(std::string(difference.occurrence_of(difference.devices[0].callers[1])) == "unknown");
}

#include "cli/coverage.h"

#include <array>
#include <nlohmann/json.hpp>

#include "catch.h"

using namespace ration::cli;
using nlohmann::json;

namespace {

constexpr std::array kRows = {
    CoverageRow{"cuTake_v2", 11020, "POOL", true, Standing::kHooked, "device", "is met here", "unit.one unit.two"},
    CoverageRow{"cuMake", 0, "COUNT", true, Standing::kGap, "", "is not met yet", ""},
    CoverageRow{"cuShow", 2000, "WATCH", true, Standing::kPassed, "", "takes nothing at all", ""},
    CoverageRow{"cuAsk", 13000, "PASS", false, Standing::kHooked, "query", "is met as well", "unit.one"},
};

}  // namespace

TEST_CASE("a gap is not covered, and what nobody asks for does not count") {
  const CoverageCounts counts = coverage_counts(kRows);
  CHECK(counts.covered == 2);
  CHECK(counts.of == 3);
  CHECK(counts.gaps == 1);
}

TEST_CASE("the coverage as text is a line a row, and what they come to") {
  const std::vector<std::string> expected = {
      "EXPORT    SINCE ACTION RATION          TESTS             WHAT THAT MEANS",
      "cuTake_v2  11.2 POOL   hooked (device) unit.one unit.two is met here",
      "cuMake        - COUNT  GAP             -                 is not met yet",
      "cuShow      2.0 WATCH  passed on       -                 takes nothing at all",
      "cuAsk      13.0 PASS   hooked (query)  unit.one          is met as well",
      "covered: 2 of 3",
      "gaps: 1",
  };
  CHECK(coverage_text(kRows) == expected);
}

TEST_CASE("the coverage as JSON has what is hooked unasked in a list of its own, and null for what is not known") {
  const json document = json::parse(coverage_json(kRows));
  CHECK(document["schema"] == "ration.coverage/1");
  CHECK(document["covered"] == 2);
  CHECK(document["of"] == 3);
  CHECK(document["gaps"] == 1);
  REQUIRE(document["rows"].size() == 3);
  CHECK(document["rows"][0] == json({{"export", "cuTake_v2"},
                                     {"since", 11020},
                                     {"action", "POOL"},
                                     {"standing", "hooked"},
                                     {"family", "device"},
                                     {"sentence", "is met here"},
                                     {"tests", {"unit.one", "unit.two"}}}));
  CHECK(document["rows"][1]["since"].is_null());
  CHECK(document["rows"][1]["family"].is_null());
  CHECK(document["rows"][1]["standing"] == "gap");
  CHECK(document["rows"][1]["tests"] == json::array());
  CHECK(document["rows"][2]["standing"] == "passed");
  REQUIRE(document["also_hooked"].size() == 1);
  CHECK(document["also_hooked"][0]["export"] == "cuAsk");
}

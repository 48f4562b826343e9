#include "cli/doctor/coverage.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "cli/base/text_table.h"

using namespace ration::cli;
using nlohmann::json;

namespace {

constexpr std::array kRows = {
    CoverageRow{"cuTake_v2", 11020, "POOL", true, Standing::kHooked, "device", "is handled here", "unit.one unit.two"},
    CoverageRow{"cuMake", 0, "COUNT", true, Standing::kGap, "", "is not handled yet", ""},
    CoverageRow{"cuShow", 2000, "WATCH", true, Standing::kPassed, "", "takes no memory", ""},
    CoverageRow{"cuAsk", 13000, "PASS", false, Standing::kHooked, "query", "is handled as well", "unit.one"},
};

}  // namespace

TEST_CASE("a gap is not covered, and a row that is not required does not count") {
  const CoverageCounts counts = coverage_counts(kRows);
  CHECK(counts.covered == 2);
  CHECK(counts.of == 3);
  CHECK(counts.gaps == 1);
}

TEST_CASE("the text of the coverage has totals and a legend, then a line for each row, gaps first") {
  const std::vector<std::string> expected = {
      "EXPORT    SINCE ACTION RATION          TESTS             WHAT THAT MEANS",
      "cuMake        - COUNT  GAP             -                 is not handled yet",
      "cuTake_v2  11.2 POOL   hooked (device) unit.one unit.two is handled here",
      "cuShow      2.0 WATCH  passed on       -                 takes no memory",
      "cuAsk      13.0 PASS   hooked (query)  unit.one          is handled as well",
  };
  const std::vector<std::string> lines = coverage_text(kRows, kUnlimitedWidth);
  REQUIRE(lines.size() == expected.size() + 5);
  CHECK(lines[0] == "covered: 2 of 3");
  CHECK(lines[1] == "gaps: 1");
  CHECK(lines[2].find("hooked: ") == 0);
  CHECK(lines[3].find("POOL ") == 0);
  CHECK(lines[4].empty());
  CHECK(std::vector(lines.begin() + 5, lines.end()) == expected);
}

TEST_CASE("on a terminal the coverage is wrapped to its width") {
  const std::vector<std::string> lines = coverage_text(kRows, 34);
  const std::vector<std::string> first = {
      "",
      "cuMake",
      "  COUNT, GAP: is not handled yet",
      "cuTake_v2",
      "  since CUDA 11.2, POOL, hooked",
      "  (device): is handled here",
      "  Tests: unit.one unit.two",
  };
  const auto begin = std::find(lines.begin(), lines.end(), "");
  REQUIRE(static_cast<std::size_t>(lines.end() - begin) > first.size());
  CHECK(std::vector(begin, begin + 7) == first);
  CHECK(std::all_of(lines.begin(), lines.end(), [](const std::string &each) { return each.size() <= 34; }));
}

TEST_CASE("the JSON of the coverage lists extra hooks apart and has null for unknown values") {
  const json document = json::parse(coverage_json(kRows));
  CHECK(document["schema"] == "ration.coverage/1");
  CHECK(document["covered"] == 2);
  CHECK(document["of"] == 3);
  CHECK(document["gaps"] == 1);
  REQUIRE(document["rows"].size() == 3);
  CHECK(document["rows"][0] == json({{"export", "cuTake_v2"},
                                     {"since", 11020},
                                     {"action", "POOL"},
                                     {"handling", "hooked"},
                                     {"family", "device"},
                                     {"sentence", "is handled here"},
                                     {"tests", {"unit.one", "unit.two"}}}));
  CHECK(document["rows"][1]["since"].is_null());
  CHECK(document["rows"][1]["family"].is_null());
  CHECK(document["rows"][1]["handling"] == "gap");
  CHECK(document["rows"][1]["tests"] == json::array());
  CHECK(document["rows"][2]["handling"] == "passed");
  REQUIRE(document["also_hooked"].size() == 1);
  CHECK(document["also_hooked"][0]["export"] == "cuAsk");
}

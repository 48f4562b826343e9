#include "config/values/faults.h"

#include "catch.h"

using namespace ration::config;

namespace {

std::vector<Fault> read(std::string_view text) {
  auto faults = parse_faults(text);
  INFO(text);
  REQUIRE(std::holds_alternative<std::vector<Fault>>(faults));
  return std::get<std::vector<Fault>>(faults);
}

std::string wrong(std::string_view text) {
  const auto faults = parse_faults(text);
  const std::string *sentence = std::get_if<std::string>(&faults);
  return sentence != nullptr ? *sentence : "";
}

}  // namespace

TEST_CASE("rules of faults are read with all their conditions") {
  const std::vector<Fault> faults =
      read("nth=5;every=10,above=1MiB,library=libcudnn;probability=0.25,seed=7,after=30s");
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].nth == 5);
  CHECK(faults[1].every == 10);
  CHECK(faults[1].above_bytes == 1 << 20);
  CHECK(faults[1].library == "libcudnn");
  CHECK(faults[2].probability == 0.25);
  CHECK(faults[2].seed == 7);
  CHECK(faults[2].after == std::chrono::seconds(30));
  CHECK(read("above=0")[0].above_bytes == 0);
  CHECK(read("above=100")[0].above_bytes == 100);
}

TEST_CASE("a rule of faults that cannot be meant is a sentence") {
  for (const char *text : {"",
                           "nth",
                           "nth=",
                           "nth=0",
                           "nth=-1",
                           "nth=1;",
                           "nth=1,",
                           "every=0",
                           "every=x",
                           "probability=0",
                           "probability=1.5",
                           "probability=nan",
                           "seed=x",
                           "above=40%",
                           "above=x",
                           "after=3d",
                           "library=",
                           "size=3",
                           "nth=1,every=2",
                           "nth=1 ,every=2",
                           "nth=1,nth=2",
                           "seed=1",
                           "nth=1,seed=2",
                           "above=1,above=2",
                           "after=3s,after=4s"}) {
    INFO(text);
    CHECK_FALSE(wrong(text).empty());
  }
  CHECK(wrong("size=3").find("unknown condition size") == 0);
  CHECK(wrong("nth=1,nth=2") == "nth is given twice in one rule; separate rules by ';'");
  CHECK(wrong("every=2,seed=3") == "seed needs a probability: probability=0.01,seed=3");
  CHECK(read("seed=3,probability=1;nth=1;nth=2").size() == 3);
}

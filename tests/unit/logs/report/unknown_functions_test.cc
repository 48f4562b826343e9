#include "logs/report/unknown_functions.h"

#include "../log_text.h"
#include "catch.h"
#include "logs/report/report.h"

using namespace ration::logs;
using namespace ration::test;
using Texts = std::vector<std::string>;

namespace {

History asked_for(const std::string &count, const std::string &names = R"("cuMemNovelty","cuDeviceNovelty")") {
  std::string log = log_of({R"({"t":"end","unknown_names":)" + count + R"(,"unknown":[)" + names +
                            R"(],"unknown_versions":3,"newer":["cuMemAlloc@14000"])"});
  log.insert(log.find("\"exe\""), R"("ver":"1.2","driver":13060,)");
  return history_of(log);
}

}  // namespace

TEST_CASE("a report names the functions that Ration does not know, and those that may take memory") {
  const History history = asked_for("70");
  const Texts lines = unknown_functions_text(history);
  REQUIRE(lines.size() > 7);
  CHECK(Texts(lines.begin(), lines.begin() + 7) ==
        Texts{"UNKNOWN FUNCTIONS were asked for, of a driver of CUDA 13.6, under Ration 1.2:",
              "  70 functions that this Ration does not know:",
              "    cuMemNovelty     may take memory or begin a capture", "    cuDeviceNovelty", "    and 68 more",
              "  3 times a function that this Ration knows, in a version that it does not (NAME@VERSION):",
              "    cuMemAlloc@14000  may take memory or begin a capture"});
  CHECK(unknown_that_take_memory(history.asked()) == Texts{"cuMemNovelty", "cuMemAlloc@14000"});
  CHECK(has_line(report_text({"x", asked_for("70")}, 10, 120), "UNKNOWN FUNCTIONS were asked for"));
}

TEST_CASE("where no more names were counted, there are at least so many") {
  CHECK(unknown_functions_text(asked_for("1535"))[1] == "  1535 functions that this Ration does not know:");
  CHECK(unknown_functions_text(asked_for("1536"))[1] == "  at least 1536 functions that this Ration does not know:");
  CHECK(unknown_functions_text(asked_for("1536"))[4] == "    and at least 1534 more");
}

TEST_CASE("of a program that asked for nothing unknown nothing is said, and no name can break a line") {
  CHECK(unknown_functions_text(history_of(log_of({kEndRecord}))).empty());
  for (const std::string &line : unknown_functions_text(asked_for("1", R"("cu\nMem\u001b[31m",7)"))) {
    CHECK(line.find_first_of("\n\x1b") == std::string::npos);
  }
}

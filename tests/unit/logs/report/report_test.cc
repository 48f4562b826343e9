#include "logs/report/report.h"

#include "../log_text.h"
#include "catch.h"
#include "cli/base/text_table.h"

#include <nlohmann/json.hpp>

using namespace ration;
using namespace ration::logs;
using namespace ration::test;

TEST_CASE("a report as JSON has the sums of all logs, and the largest leak first") {
  std::vector<Report> reports;
  reports.push_back({"a", history_of(log_of({alloc_record(1, 100), kEndRecord}))});
  reports.push_back({"b", history_of(log_of({alloc_record(1, 300), free_record(1), alloc_record(2, 200),
                                             oom_record("limit", 5, 1, 1), kEndRecord}))});
  const auto document = nlohmann::json::parse(report_json(reports));
  CHECK(document.at("peak_bytes") == 300);
  CHECK(document.at("peak_seq") == 1);
  CHECK(document.at("allocs") == 3);
  CHECK(document.at("frees") == 1);
  CHECK(document.at("failures") == 1);
  REQUIRE(document.at("leaks").size() == 2);
  CHECK(document.at("leaks")[0].at("bytes") == 200);
  CHECK(document.at("leaks")[0].at("stack").is_array());
  CHECK(document.at("leaks")[1].at("log") == "a");
  CHECK(document.at("logs").size() == 2);
}

TEST_CASE("a report in words says what would have helped") {
  const Report report{"run.jsonl",
                      history_of(log_of({alloc_record(1, 100), oom_record("limit", 28, 100, 4), kEndRecord}))};
  const std::vector<std::string> lines = report_text(report, 10, 80);
  CHECK(has_line(lines, "run.jsonl: /bin/train (pid 42)"));
  CHECK(has_line(lines, "device 0 GPU: peak used 100 bytes of the limit of 7.63MiB (8000000 bytes)"));
  CHECK(has_line(lines, "refused: 1 call of cuMemAlloc_v2, reason limit, first at record 2"));
  CHECK(has_line(lines, "it needs a limit above 7.63MiB (8000000 bytes), the one in force"));
  CHECK(has_line(leaks_text(report, 80), "1 block not freed, 100 bytes"));
  CHECK(has_line(leaks_text({"x", history_of(log_of({kEndRecord}))}, 80), "x: every block was freed"));
}

TEST_CASE("memory that only the driver's pools held is told, where no block was live") {
  const std::string log =
      log_of({R"({"t":"sample","dev":0,"api":"cuGraphLaunch","pool_reserved":2097152)", kEndRecord});
  CHECK(has_line(report_text({"x", history_of(log)}, 10, 80), "  peak reserved 2MiB (2097152 bytes) at 0.000 s"));
}

TEST_CASE("of a log without its end it is said that nothing was requested so far") {
  CHECK(report_text({"x", history_of(log_of({kEndRecord}))}, 10, 80).back() == "no device memory was requested");
  CHECK(report_text({"x", history_of(log_of({}))}, 10, 80).back() ==
        "no device memory was requested, as far as the log goes");
}

TEST_CASE("a limit that was changed later is not told as the one that held") {
  const std::string raised =
      R"({"t":"oom","dev":0,"api":"cuMemAlloc_v2","reason":"limit","req":9000000,"used":9000000,"limit":16777216)";
  const std::vector<std::string> lines = report_text(
      {"x", history_of(log_of({alloc_record(1, 9000000), raised, kEndRecord}))}, 10, ration::cli::kUnlimitedWidth);
  CHECK(has_line(lines, "of the limit of 7.63MiB (8000000 bytes) at the start, later 16MiB (16777216 bytes)"));
  CHECK(has_line(
      report_text({"x", history_of(log_of({alloc_record(1, 9000000), kEndRecord}))}, 10, ration::cli::kUnlimitedWidth),
      "of the limit of 7.63MiB (8000000 bytes) at the start, and more later"));
  CHECK_FALSE(has_line(report_text({"x", history_of(log_of({oom_record("limit", 9000000, 0, 0), kEndRecord}))}, 10,
                                   ration::cli::kUnlimitedWidth),
                       "at the start"));
}

TEST_CASE("a report in words says which group's limit held") {
  std::string log = log_of({alloc_record(1, 100), kEndRecord});
  log.insert(log.find(",\"limit_asked\""), ",\"group_limit\":4000000");
  CHECK(has_line(report_text({"x", history_of(log)}, 10, ration::cli::kUnlimitedWidth),
                 "(8000000 bytes), in a group of 3.81MiB (4000000 bytes)"));
  log.replace(log.find("true"), 4, "false");
  CHECK(has_line(report_text({"x", history_of(log)}, 10, ration::cli::kUnlimitedWidth),
                 "no limit of its own, in a group of 3.81MiB"));
}

TEST_CASE("a report says who held the group that refused, and what was guaranteed to whom") {
  const std::string holders =
      R"([{"pid":7,"exe":"/bin/idle","reserved":0,"used":0,"guarantee":300},)"
      R"({"pid":8,"exe":"/bin/busy","reserved":200,"used":200},{"pid":9,"exe":"c","reserved":1,"used":1},)"
      R"({"pid":10,"exe":"d","reserved":1,"used":1}])";
  const std::string refusal = oom_record("group", 28, 100, 4) +
                              R"(,"group":"g","group_limit":520,"group_reserved":202,"group_claimed":502,"holders":)" +
                              holders;
  std::vector<Report> reports;
  reports.push_back({"x", history_of(log_of({refusal, kEndRecord}))});
  const std::vector<std::string> lines = report_text(reports[0], 10, 80);
  CHECK(has_line(lines, "  of group g 502 bytes were held or guaranteed, its limit was 520 bytes"));
  CHECK(has_line(lines, "  /bin/idle (pid 7) was guaranteed 300 bytes"));
  CHECK(std::count(lines.begin(), lines.end(), "  /bin/busy (pid 8) held 200 bytes") == 1);
  CHECK(has_line(lines, "  and 1 other"));
  const auto json = nlohmann::json::parse(report_json(reports))["logs"][0]["devices"][0]["refusals"][0];
  CHECK(json.at("group") == "g");
  CHECK(json.at("group_limit") == 520);
  CHECK(json.at("group_claimed") == 502);
  CHECK(json.at("holders").size() == 4);
  CHECK(json.at("holders")[0] ==
        nlohmann::json{{"pid", 7}, {"program", "/bin/idle"}, {"reserved", 0}, {"guarantee", 300}});
  CHECK(json.at("holders")[1].at("guarantee") == 0);
}

TEST_CASE("no line of a report is longer than the terminal, tables and sentences alike") {
  const std::string log = log_of({oom_record("limit", 28, 100, 4), alloc_record(1, 100), kEndRecord});
  for (const std::string &line : report_text({"x", history_of(log)}, 10, 60)) {
    CHECK(line.size() <= 60);
  }
}

TEST_CASE("a refusal by no group names none") {
  std::vector<Report> reports;
  reports.push_back({"x", history_of(log_of({oom_record("limit", 28, 100, 4), kEndRecord}))});
  CHECK_FALSE(has_line(report_text(reports[0], 10, 80), "guaranteed"));
  CHECK(report_json(reports).find("group_claimed") == std::string::npos);
}

TEST_CASE("pinned host memory that is left is told with its stacks, and apart from the device's") {
  const std::string pinned =
      R"({"t":"alloc","dev":0,"api":"cuMemHostAlloc","kind":"host","charged":false,"src":"driver","req":1,)";
  const Report report{
      "x", history_of(log_of({alloc_record(1, 100), pinned + R"("addr":"0x7","size":40,"stack":3)",
                              pinned + R"("addr":"0x8","size":30)", pinned + R"("addr":"0x9","size":20)",
                              R"({"t":"free","dev":0,"kind":"host","addr":"0x9","charged":false)", kEndRecord}))};
  const History &history = report.history;
  const std::vector<Leak> leaks = leaks_of(history, 0);
  REQUIRE(leaks.size() == 3);
  CHECK_FALSE(leaks[0].is_host);
  CHECK((leaks[1].is_host && leaks[1].group.bytes == 40 && leaks[1].stack == 3));
  CHECK((leaks[2].is_host && leaks[2].group.bytes == 30 && leaks[2].name == "cuMemHostAlloc"));
  CHECK(history.devices()[0].live_bytes == 100);
  CHECK(history.devices()[0].peak.bytes == 100);
  const std::vector<std::string> lines = leaks_text(report, 80);
  CHECK(has_line(lines, "x: device 0: 1 block not freed, 100 bytes"));
  CHECK(has_line(lines, "x: device 0: 2 blocks of pinned host memory not freed, 70 bytes"));
}

TEST_CASE("blocks without a stack are leaks, too, in a log with stacks") {
  const History history = history_of(log_of(
      {alloc_record(1, 100, R"("src":"driver","stack":1)"), alloc_record(2, 50), alloc_record(3, 7), free_record(3)}));
  const std::vector<Leak> leaks = leaks_of(history, 0);
  REQUIRE(leaks.size() == 2);
  CHECK(leaks[0].group.bytes == 100);
  CHECK(leaks[1].group.bytes == 50);
}

#include "logs/report/report.h"

#include "../log_text.h"
#include "catch.h"
#include "cli/base/text_table.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

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
  const std::vector<std::string> lines = report_text(report, 10, 120);
  CHECK(has_line(lines, "run.jsonl: /bin/train (pid 42)"));
  CHECK(has_line(lines, "device 0 GPU: peak used 100 bytes of the limit of 7.63MiB (8000000 bytes)"));
  CHECK(lines[3] == "REFUSED on device 0: 1 call of cuMemAlloc_v2, over the limit, at 0.000 s, record 2");
  CHECK(lines[4] == "  it asked for 28 bytes: the largest free piece had 4 bytes");
  CHECK(has_line(lines, "  the program held 100 bytes then:"));
  CHECK(has_line(lines, "    100B in 1 block by cuMemAlloc_v2"));
  CHECK(has_line(lines, "AT PEAK BLOCKS CALLER"));
  CHECK(has_line(lines, "NOT FREED BLOCKS  OLDEST CALLER"));
  CHECK(has_line(lines, "it needs a limit above 7.63MiB (8000000 bytes), the one in force"));
  CHECK(has_line(leaks_text(report, 80), "1 block not freed, 100 bytes"));
  CHECK(has_line(leaks_text({"x", history_of(log_of({kEndRecord}))}, 80), "x: every block was freed"));
}

TEST_CASE("of a log that is not whole, counts and the reserved peak are lower bounds") {
  const std::vector<std::string> records = {alloc_record(1, 100), oom_record("limit", 28, 100, 4)};
  const auto said = [&records](const std::string &last) {
    std::vector<std::string> all = records;
    all.push_back(last);
    return report_text({"x", history_of(log_of(all))}, 10, 120);
  };
  for (const std::string &last : {free_record(1), std::string(R"({"t":"dropped","count":3)")}) {
    CHECK(has_line(said(last), "REFUSED on device 0: at least 1 call of"));
    CHECK(has_line(said(last), "; peak reserved at least 100 bytes"));
    CHECK(has_line(said(last), "  at least 1 allocation, "));
  }
  CHECK_FALSE(has_line(said(kEndRecord), "at least"));
}

TEST_CASE("memory that only the driver's pools held is told, where no block was live") {
  const std::string log =
      log_of({R"({"t":"sample","dev":0,"api":"cuGraphLaunch","pool_reserved":2097152)", kEndRecord});
  CHECK(has_line(report_text({"x", history_of(log)}, 10, 80), "  peak reserved 2MiB (2097152 bytes) at 0.000 s"));
}

TEST_CASE("of a log without its end it is said that nothing was requested so far") {
  CHECK(report_text({"x", history_of(log_of({kEndRecord}))}, 10, 80).back() == "no device memory was requested");
  CHECK(report_text({"x", history_of(log_of({}))}, 10, 80).back() ==
        "no device memory was requested, as far as the log goes: the peak is unknown");
}

TEST_CASE("without stacks a report says that its callers are driver functions, and only where it has callers") {
  const auto lines_of = [](const std::vector<std::string> &records, By by) {
    return report_text({"x", history_of(log_of(records), by)}, 10, 120);
  };
  const std::string plain = alloc_record(1, 100);
  CHECK(lines_of({plain, kEndRecord}, By::caller)[1] ==
        "recorded without --stacks native (or python): driver functions are shown in place of callers");
  for (const auto &lines : {lines_of({plain, kEndRecord}, By::size), lines_of({kEndRecord}, By::caller),
                            lines_of({alloc_record(1, 100, R"("src":"driver","stack":1)"), kEndRecord}, By::caller)}) {
    CHECK_FALSE(has_line(lines, "without --stacks"));
  }
}

TEST_CASE("functions of a file that is not there any more have no names, and a report says so") {
  const std::string log =
      log_of({R"({"t":"mod","id":1,"path":"/nonexistent/train","build_id":"ab","base":0)",
              R"({"t":"frame","id":1,"mod":1,"off":16)", R"({"t":"stack","id":1,"frame":1,"parent":0)",
              alloc_record(1, 100, R"("src":"driver","stack":1)"), kEndRecord});
  std::vector<Report> reports;
  reports.push_back({"x", history_of(log)});
  CHECK(report_text(reports[0], 10, 120)[1] == "no names of functions in /nonexistent/train: it is not here");
  CHECK(report_text(reports[0], 10, 120)[2] == "with ration run --embed-names a log has the names itself");
  CHECK(nlohmann::json::parse(report_json(reports))["logs"][0]["unnamed"][0]["reason"] == "it is not here");
}

TEST_CASE("functions of a file that was built anew since have no names, and a report says so") {
  const std::string log =
      log_of({R"({"t":"mod","id":1,"path":"/proc/self/exe","build_id":"ab","base":0)",
              R"({"t":"frame","id":1,"mod":1,"off":16)", R"({"t":"stack","id":1,"frame":1,"parent":0)",
              alloc_record(1, 100, R"("src":"driver","stack":1)"), kEndRecord});
  CHECK(report_text({"x", history_of(log)}, 10, 120)[1] ==
        "no names of functions in /proc/self/exe: it has changed since");
}

TEST_CASE("a peak that a log cannot know is unknown, or at least what the log has") {
  const auto report_of = [](const std::vector<std::string> &records) {
    std::vector<Report> reports;
    reports.push_back({"x", history_of(log_of(records))});
    return reports;
  };
  const std::string lost = R"({"t":"dropped","count":3)";
  const auto some = report_of({alloc_record(1, 100), lost});
  CHECK(has_line(report_text(some[0], 10, 120),
                 "the log lacks 3 records (its disk was full, or a file size limit reached)"));
  CHECK(has_line(report_text(some[0], 10, 120), ": peak used at least 100 bytes of"));
  CHECK(nlohmann::json::parse(report_json(some))["logs"][0]["peak_is_exact"] == false);
  const auto refused = report_of({oom_record("limit", 5, 1, 1), lost});
  CHECK(has_line(report_text(refused[0], 10, 120), ": peak used unknown of"));
  CHECK(nlohmann::json::parse(report_json(refused))["peak_bytes"].is_null());
  CHECK(nlohmann::json::parse(report_json(report_of({kEndRecord})))["peak_bytes"] == 0);
  // What the end says was freed did not leak, though the log lacks the free.
  const std::string freed =
      R"({"t":"end","live":[{"dev":0,"count":0,"bytes":0}],"peak":[100],"reserved_peak":[100],"dropped":1)";
  const auto whole = nlohmann::json::parse(report_json(report_of({alloc_record(1, 100), freed})));
  CHECK(whole["leaks"].empty());
  CHECK(whole["peak_bytes"] == 100);
  // A full disk may have kept everything after this from the log.
  CHECK(has_line(report_text(report_of({alloc_record(1, 100)})[0], 10, 120), ": peak used at least 100 bytes of"));
  CHECK(has_line(report_text(report_of({alloc_record(1, 100), kEndRecord})[0], 10, 120), ": peak used 100 bytes of"));
}

TEST_CASE("after a loss, counts are those of the end, and no block that may have been freed is named as a leak") {
  const auto report_of = [](int first_freed, int frees) {
    std::vector<std::string> records = {alloc_record(1, 100), alloc_record(2, 20), R"({"t":"dropped","count":9)",
                                        alloc_record(3, 7)};
    if (first_freed != 0) {
      records.push_back(free_record(first_freed));
    }
    records.push_back(R"({"t":"end","live":[{"dev":0,"count":2,"bytes":27}],"peak":[150],"reserved_peak":[150],)"
                      R"("ooms":0,"allocs":)" +
                      std::to_string(frees + 2) + R"(,"frees":)" + std::to_string(frees) + R"(,"dropped":9)");
    std::vector<Report> reports;
    reports.push_back({"x", history_of(log_of(records), By::size)});
    return reports;
  };
  const auto leaks = [](const std::vector<Report> &reports) {
    std::map<std::string, std::uint64_t> bytes;
    const auto document = nlohmann::json::parse(report_json(reports));
    for (const auto &each : document["leaks"]) {
      bytes[each["caller"]] = each["bytes"];
    }
    return bytes;
  };
  // Of the 300 frees the log has none or one: which of the first two blocks they were is unknown.
  for (const int first_freed : {0, 1}) {
    const auto some = report_of(first_freed, 300);
    CHECK(leaks(some) == std::map<std::string, std::uint64_t>{{"4B to 8B", 7}, {"unknown: the log lacks records", 20}});
    CHECK(has_line(report_text(some[0], 10, 120), "  302 allocations, 300 frees"));
    CHECK(nlohmann::json::parse(report_json(some))["allocs"] == 302);
  }
  // If the log has all frees, what it has no free of was not freed.
  CHECK(leaks(report_of(1, 1)) == std::map<std::string, std::uint64_t>{{"4B to 8B", 7}, {"16B to 32B", 20}});
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
  const std::string refusal =
      oom_record("group", 28, 100, 4) +
      R"(,"group":"g","group_limit":520,"group_reserved":202,"group_claimed":502,"more_holders":4,"holders":)" +
      holders;
  std::vector<Report> reports;
  reports.push_back({"x", history_of(log_of({refusal, kEndRecord}))});
  const std::vector<std::string> lines = report_text(reports[0], 10, 80);
  CHECK(has_line(lines, "  group g: 502 bytes held or kept free, of a limit of 520 bytes"));
  CHECK(has_line(lines, "  /bin/idle (pid 7) kept 300 bytes free under its guarantee"));
  CHECK(std::count(lines.begin(), lines.end(), "  /bin/busy (pid 8) held 200 bytes") == 1);
  CHECK(has_line(lines, "  and 5 others: 1 byte"));
  const auto json = nlohmann::json::parse(report_json(reports))["logs"][0]["devices"][0]["refused_requests"][0];
  CHECK(json.at("group") == "g");
  CHECK(json.at("group_limit") == 520);
  CHECK(json.at("group_claimed_bytes") == 502);
  CHECK(json.at("holders").size() == 4);
  CHECK(json.at("holders")[0] ==
        nlohmann::json{{"pid", 7}, {"program", "idle"}, {"reserved_bytes", 0}, {"guarantee", 300}});
  CHECK(json.at("holders")[1].at("guarantee") == 0);
}

TEST_CASE("of a full device a report also says what none of its holders held") {
  const std::string holders = R"(,"holders":[{"pid":7,"exe":"/bin/busy","reserved":999000000,"used":200}])";
  std::vector<Report> reports;
  reports.push_back({"x", history_of(log_of({oom_record("device", 28, 100, 4) + holders, kEndRecord}))});
  CHECK(has_line(report_text(reports[0], 10, 80),
                 "  977KiB (999999 bytes) were the driver's own, or held outside Ration"));
  const auto json = nlohmann::json::parse(report_json(reports))["logs"][0]["devices"][0]["refused_requests"][0];
  CHECK(json.at("holders")[1] ==
        nlohmann::json{{"pid", nullptr}, {"program", "outside Ration"}, {"reserved_bytes", 999999}, {"guarantee", 0}});
  const std::string of_group =
      report_text({"x", history_of(log_of({oom_record("group", 28, 100, 4) + holders}))}, 10, 80).back();
  CHECK(of_group.find("outside Ration") == std::string::npos);
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

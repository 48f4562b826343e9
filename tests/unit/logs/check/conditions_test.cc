#include "logs/check/conditions.h"

#include "../log_text.h"
#include "catch.h"

using namespace ration;
using namespace ration::logs;
using namespace ration::test;

namespace {

std::vector<std::string> reasons(const Conditions &conditions, const std::string &log) {
  const std::vector<Verdict> verdicts = judge(conditions, history_of(log));
  REQUIRE(verdicts.size() == 1);
  return verdicts.front().reasons;
}

config::LimitMap of_each(const config::Size &size) {
  config::LimitItem item;
  item.size = size;
  return {item};
}

}  // namespace

TEST_CASE("a peak beyond the condition is a reason, one at it is none") {
  const std::string log = log_of({alloc_record(1, 3 << 20), free_record(1), kEndRecord});
  Conditions conditions;
  conditions.max_peak = of_each(config::Size::of_bytes(3 << 20));
  CHECK(reasons(conditions, log).empty());
  conditions.max_peak = of_each(config::Size::of_bytes((3 << 20) - 1));
  CHECK(has_line(reasons(conditions, log), "device 0: peak used 3MiB (3145728 bytes) at record 1"));
  conditions.max_peak = of_each(config::Size::of_share(1, 1000));  // of a device of 1,000,000,000 bytes
  CHECK(has_line(reasons(conditions, log), "more than 977KiB (1000000 bytes)"));
  conditions.max_peak->front().ordinal = 1;  // the other device
  CHECK(reasons(conditions, log).empty());
}

TEST_CASE("a block that was never freed is a leak, and a log without an end is no proof") {
  Conditions conditions;
  conditions.no_leaks = true;
  CHECK(reasons(conditions, log_of({alloc_record(1, 100), free_record(1), kEndRecord})).empty());
  CHECK(has_line(reasons(conditions, log_of({alloc_record(1, 100), alloc_record(2, 28), kEndRecord})),
                 "2 blocks not freed, 128 bytes in all: 2 blocks of cuMemAlloc_v2"));
  CHECK(has_line(reasons(conditions, log_of({alloc_record(1, 100), free_record(1)})), "the log has no end record"));
}

TEST_CASE("a caller that holds more and more is growth, weights that are loaded once are none") {
  Conditions conditions;
  conditions.no_growth = true;
  std::vector<std::string> records;
  for (int i = 0; i < 40; ++i) {
    records.push_back(alloc_record(i, 100));
    records.push_back(alloc_record(1000, 50));
    records.push_back(free_record(1000));
  }
  std::vector<std::string> loaded(records.begin(), records.begin() + 36);
  for (int i = 0; i < 100; ++i) {
    loaded.push_back(alloc_record(1000, 700));
    loaded.push_back(free_record(1000));
  }
  CHECK(has_line(reasons(conditions, log_of(records)),
                 "device 0: cuMemAlloc_v2 grows: the least that it held rose from "));
  CHECK(has_line(reasons(conditions, log_of(records)), ", as far as the log goes"));
  CHECK(reasons(conditions, log_of(loaded)).empty());
  records.emplace_back(R"({"t":"dropped","count":3)");
  CHECK(reasons(conditions, log_of(records)) ==
        std::vector<std::string>{"records are missing: whether memory grew is not known"});
}

TEST_CASE("refusals, failures in the driver and lost records are failures") {
  Conditions conditions;
  conditions.no_failures = true;
  CHECK(reasons(conditions, log_of({alloc_record(1, 100), kEndRecord})).empty());
  CHECK(has_line(reasons(conditions, log_of({oom_record("limit", 5, 1, 1), oom_record("limit", 9, 1, 1), kEndRecord})),
                 "2 refusals of cuMemAlloc_v2, reason limit; the largest request: 9 bytes"));
  CHECK(has_line(reasons(conditions, log_of({R"({"t":"end","failed_allocs":2,"failed_frees":1)"})),
                 "2 allocations failed in the driver"));
  CHECK(has_line(reasons(conditions, log_of({R"({"t":"dropped","count":3)", kEndRecord})), "the log lacks 3 records"));
  CHECK(has_line(reasons(conditions, log_of({alloc_record(1, 100)})),
                 "no end record, which tells whether records were lost"));
  CHECK(has_line(reasons(conditions, log_of({R"({"t":"dropped","count":3)", R"({"t":"end","ooms":2)"})),
                 "2 refusals whose records the log lacks"));
}

TEST_CASE("fragmentation is of free memory that all together would have served") {
  Conditions conditions;
  conditions.max_fragmentation_percent = 50;
  // 4,000,000 of 8,000,000 are free, 1,000,000 of that in one piece.
  const std::string log = log_of({oom_record("pool_holds", 3'000'000, 4'000'000, 1'000'000), kEndRecord});
  CHECK(has_line(reasons(conditions, log), "device 0: 75% of the free memory"));
  CHECK(has_line(reasons(conditions, log), "refused, more than 50%"));
  conditions.max_fragmentation_percent = 74.9999;
  CHECK(has_line(reasons(conditions, log), "refused, more than 74.9999%"));
  conditions.max_fragmentation_percent = 75;
  CHECK(reasons(conditions, log).empty());
  CHECK(has_line(reasons(conditions, log_of({R"({"t":"dropped","count":3)", kEndRecord})),
                 "the log lacks 3 records: they may"));
  conditions.max_fragmentation_percent = 0;
  CHECK(reasons(conditions, log_of({oom_record("limit", 5'000'000, 4'000'000, 1'000'000), kEndRecord})).empty());
}

TEST_CASE("a JUnit report has a suite for each log, and a case for each condition") {
  const std::string report =
      junit_report({{"a<b.jsonl", {{"--no-leaks", {}}, {"--max-peak", {"too \"much\" & more"}}}, 1},
                    {"c", {{"--no-leaks", {}}}, 2}});
  CHECK(report.find(R"(<testsuite name="c" tests="1" failures="0")") != std::string::npos);
  CHECK(report.find(R"(<testsuite name="a&lt;b.jsonl" tests="2" failures="1")") != std::string::npos);
  CHECK(report.find(R"(name="--no-leaks"/>)") != std::string::npos);
  CHECK(report.find(R"(<failure message="too &quot;much&quot; &amp; more">)") != std::string::npos);
}

TEST_CASE("of a log that was cut off neither the peak nor what was freed is known") {
  History history(By::caller);
  history.note_cut_off();
  history.finish();
  Conditions conditions;
  conditions.max_peak = of_each(config::Size::of_bytes(1 << 30));
  conditions.no_leaks = true;
  conditions.max_fragmentation_percent = 100;
  for (const Verdict &verdict : judge(conditions, history)) {
    CHECK(has_line(verdict.reasons, "the log was cut off: "));
  }
}

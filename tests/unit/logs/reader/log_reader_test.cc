#include "logs/reader/log_reader.h"

#include "../log_text.h"
#include "catch.h"

using namespace ration;
using namespace ration::logs;
using namespace ration::test;

TEST_CASE("a log is read to its last record") {
  CHECK(problem_in(log_of({alloc_record(1, 100), free_record(1), kEndRecord})).empty());
  CHECK(problem_in(log_of({alloc_record(1, 100)})).empty());  // of a process that was killed
}

TEST_CASE("what is no whole log is said in a sentence") {
  CHECK(problem_in("") == "it is empty: the program has made no CUDA call, or could not write it");
  CHECK(problem_in("no json\n") == "not a log of Ration: its first line is not a meta record");
  CHECK(problem_in("{\"t\":\"alloc\"}\n") == "not a log of Ration: its first line is not a meta record");
  CHECK(problem_in(R"({"t":"meta","schema":"ration.events/2"})"
                   "\n") == "a newer version of Ration wrote it, as ration.events/2: this one reads ration.events/1");
  CHECK(problem_in(std::string(kMetaRecord) + "\n" + R"({"t":"free","seq":2})" + "\n") ==
        "line 2: records are missing before this one");
  CHECK(problem_in(std::string(kMetaRecord) + "\n[]\n") == "line 2: no record: the log was cut off or changed");
  CHECK(problem_in("ok") == "not a log of Ration: its first line is not a meta record");
  CHECK(problem_in("{") == "line 1: the log was cut off here");
  CHECK(problem_in(std::string(kMetaRecord).substr(0, 60)) == "line 1: the log was cut off here");
  const std::string whole = log_of({free_record(1), free_record(2)});
  CHECK(problem_in(whole.substr(0, whole.find("free") + 5) + "\n" + whole.substr(whole.find('\n') + 1)) ==
        "line 2: no record: the log was cut off or changed");  // and goes on
}

TEST_CASE("a first line that lists impossible devices is refused, by every number") {
  const auto with_devices = [](const std::string &devices) {
    return R"({"t":"meta","schema":"ration.events/1","pid":1,"devices":)" + devices + "}\n" + alloc_record(1, 100) +
           R"(,"ts":1,"seq":1})" + "\n";
  };
  for (const char *number : {"4096", "100000000", "18446744073709551615"}) {
    CHECK(problem_in(with_devices("[{\"dev\":" + std::string(number) + "}]")) == "line 1: no device has such a number");
  }
  for (const char *devices :
       {R"("x")", "7", "null", R"([1,"a",null])", R"({"a":1})", R"([{"dev":0,"limit_asked":5}])"}) {
    INFO(devices);
    CHECK(history_of(with_devices(devices)).allocs() == 1);
  }
}

TEST_CASE("a log that was cut off in its last line is read to there") {
  const std::string whole = log_of({free_record(1), free_record(2), free_record(3)});
  const auto read = [](const std::string &text) {
    std::istringstream log(text);
    LogReader reader(log);
    std::uint64_t records = 0;
    for (Record record; reader.next(record); ++records) {
    }
    CHECK(reader.problem().empty());
    return std::pair(records, reader.cut_off_line());
  };
  CHECK(read(whole) == std::pair<std::uint64_t, std::uint64_t>(4, 0));
  const std::uint64_t last = whole.rfind('{');
  for (std::uint64_t bytes = last + 1; bytes < whole.size() - 1; ++bytes) {
    CHECK(read(whole.substr(0, bytes)) == std::pair<std::uint64_t, std::uint64_t>(3, 4));
  }
  CHECK(read(whole.substr(0, last + 20) + "\n") == std::pair<std::uint64_t, std::uint64_t>(3, 4));
  CHECK(read(whole.substr(0, whole.size() - 1)) == std::pair<std::uint64_t, std::uint64_t>(4, 4));  // no newline
  CHECK(read(whole.substr(0, last)) == std::pair<std::uint64_t, std::uint64_t>(3, 0));
  const std::string ended = log_of({kEndRecord});
  CHECK(read(ended.substr(0, ended.size() - 1)) == std::pair<std::uint64_t, std::uint64_t>(2, 0));
}

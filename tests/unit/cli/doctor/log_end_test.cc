#include "logs/reader/log_end.h"

#include <filesystem>
#include <sstream>

#include "catch.h"
#include "cli/base/exit_status.h"
#include "cli/doctor/unknown_functions.h"

#include <nlohmann/json.hpp>

using namespace ration::cli;
using namespace ration::logs;
using nlohmann::json;
using Lines = std::vector<std::string>;

namespace {

const std::string kMeta =
    R"({"t":"meta","schema":"ration.events/1","ver":"1.2","pid":42,"exe":"/bin/train","driver":13060})"
    "\n";
const std::string kFree = R"({"t":"free","ts":1,"seq":1}      )"
                          "\n";
const std::string kEnd = R"({"t":"end","unknown_names":70,"unknown":["cuMemNovelty","cuDeviceNovelty"],)"
                         R"("unknown_versions":3,"newer":["cuMemAlloc@14000"],"ts":2,"seq":2})"
                         "\n";

std::variant<LogEnd, LogProblem> read(const std::string &text) {
  std::istringstream log(text);
  LogReader reader(log);
  return read_log_end(reader);
}

int status_of(const std::string &text) {
  const auto seen = read(text);
  return std::holds_alternative<LogProblem>(seen) ? std::get<LogProblem>(seen).status : 0;
}

LogEnd example() {
  return std::get<LogEnd>(read(kMeta + kFree + kEnd));
}

}  // namespace

TEST_CASE("the end of a log says what its program asked for") {
  const LogEnd end = example();
  CHECK(end.program == "/bin/train");
  CHECK(end.pid == 42);
  CHECK(end.driver == 13060);
  CHECK(end.version == "1.2");
  CHECK(end.unknown_names == 70);
  CHECK(end.unknown == Lines{"cuMemNovelty", "cuDeviceNovelty"});
  CHECK(end.unknown_versions == 3);
  CHECK(end.newer == Lines{"cuMemAlloc@14000"});
}

TEST_CASE("what is no whole log is unreadable") {
  CHECK(status_of("") == kUnreadable);
  CHECK(status_of("\n") == kUnreadable);
  CHECK(status_of("not a log\n") == kUnreadable);
  CHECK(status_of("[1]\n") == kUnreadable);
  CHECK(status_of("{}\n") == kUnreadable);
  CHECK(status_of(kFree + kEnd) == kUnreadable);                     // no meta
  CHECK(status_of(kMeta + kEnd) == kUnreadable);                     // a record is missing
  CHECK(status_of(kMeta + kFree.substr(20) + kEnd) == kUnreadable);  // half a line
  CHECK(status_of(kMeta + "7\n" + kEnd) == kUnreadable);             // JSON, and no record
  CHECK(status_of(kMeta +
                  R"({"t":"free"})"
                  "\n" +
                  kEnd) == kUnreadable);  // without a number
  CHECK(status_of(std::string(1000, '\0') + "\n") == kUnreadable);
  CHECK(status_of(kMeta + kFree +
                  R"({"t":"end","unknown_names":-1,"unknown":7,"unknown_versions":0,"newer":[],"seq":2})"
                  "\n") == kUnreadable);
  CHECK(std::get<LogProblem>(read(kMeta + kEnd)).line == "line 2: records are missing before this one");
}

TEST_CASE("a log in a newer schema is said to be one, and any other first line is none of a log") {
  const auto line_of = [](const std::string &schema) {
    const auto seen = read(R"({"t":"meta","schema":")" + schema + R"("})" + "\n");
    CHECK(std::get<LogProblem>(seen).status == kUnreadable);
    return std::get<LogProblem>(seen).line;
  };
  CHECK(line_of("ration.events/2") ==
        "a newer version of Ration wrote it, as ration.events/2: this one reads ration.events/1");
  CHECK(line_of("ration.events/12").find("a newer version of Ration wrote it") == 0);
  for (const char *other :
       {"ration.events/0", "ration.events/", "ration.events", "ration.usage/2", "other.events/2", ""}) {
    INFO(other);
    CHECK(line_of(other) == "not a log of Ration: its first line is no meta record");
  }
}

TEST_CASE("a log without an end, or with one of an older version, does not say") {
  CHECK(status_of(kMeta) == kNoAnswer);
  CHECK(status_of(kMeta + kFree) == kNoAnswer);
  CHECK(status_of(kMeta + R"({"t":"end","unknown_versions":0,"seq":1})"
                          "\n") == kNoAnswer);
}

TEST_CASE("a file that cannot be read is unreadable") {
  for (const char *path : {"/nonexistent/log", "/", "/dev/null"}) {
    INFO(path);
    LogReader reader{std::string(path)};
    const auto seen = read_log_end(reader);
    REQUIRE(std::holds_alternative<LogProblem>(seen));
    CHECK(std::get<LogProblem>(seen).status == kUnreadable);
    CHECK_FALSE(std::get<LogProblem>(seen).line.empty());
  }
}

TEST_CASE("the text has the names, those that were not kept, and what can be done") {
  const Lines lines = unknown_functions_text("run.jsonl", example());
  const Lines expected = {
      "run.jsonl: /bin/train (pid 42), a driver of CUDA 13.6, Ration 1.2",
      "It asked the driver for 70 functions that this Ration does not know:",
      "  cuMemNovelty     may take memory or begin a capture",
      "  cuDeviceNovelty",
      "  and 68 more",
      "It asked 3 times for functions that this Ration knows, in versions that it does not (NAME@VERSION):",
      "  cuMemAlloc@14000  may take memory or begin a capture",
  };
  REQUIRE(lines.size() > expected.size());
  CHECK(Lines(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(expected.size())) == expected);
  CHECK(std::find(lines.begin(), lines.end(), "What you can do:") != lines.end());
}

TEST_CASE("where no more names were counted, there are at least so many") {
  LogEnd end = example();
  end.unknown_names = 1535;
  CHECK(unknown_functions_text("a", end)[1] ==
        "It asked the driver for 1535 functions that this Ration does not know:");
  CHECK(unknown_functions_text("a", end)[4] == "  and 1533 more");
  end.unknown_names = 1536;
  CHECK(unknown_functions_text("a", end)[1] ==
        "It asked the driver for at least 1536 functions that this Ration does not know:");
  CHECK(unknown_functions_text("a", end)[4] == "  and at least 1534 more");
}

TEST_CASE("a program that asked for nothing unknown is told so, without advice") {
  LogEnd end;
  end.program = "train";
  CHECK(unknown_functions_text("a", end) ==
        Lines{"a: train (pid 0), an unknown driver, Ration ",
              "It asked the driver for no function that this Ration does not know."});
}

TEST_CASE("the JSON has integers and lists") {
  CHECK(json::parse(unknown_functions_json("run.jsonl", example())) ==
        json{{"schema", "ration.unknown/1"},
             {"log", "run.jsonl"},
             {"program", "/bin/train"},
             {"pid", 42},
             {"driver", 13060},
             {"ration", "1.2"},
             {"unknown_names", 70},
             {"unknown", {"cuMemNovelty", "cuDeviceNovelty"}},
             {"unknown_versions", 3},
             {"newer", json::array({"cuMemAlloc@14000"})},
             {"may_take_memory", {"cuMemNovelty", "cuMemAlloc@14000"}}});
}

TEST_CASE("text from a log cannot break a line or the JSON") {
  LogEnd end = example();
  end.program = "a\nb\x1b[31m\xff";
  end.unknown = {"cu\nMem"};
  for (const std::string &line : unknown_functions_text("x\ny", end)) {
    CHECK(line.find_first_of("\n\x1b") == std::string::npos);
  }
  CHECK(json::parse(unknown_functions_json("x\ny", end)).at("unknown").at(0) == "cu\nMem");
}

TEST_CASE("a log that was cut off has no answer, and one that only lacks its last newline has") {
  CHECK(status_of(kMeta + kFree + kEnd.substr(0, 50)) == kNoAnswer);
  CHECK(status_of(kMeta + kFree.substr(0, 20)) == kNoAnswer);
  CHECK(status_of(kMeta + kFree + kEnd.substr(0, kEnd.size() - 1)) == 0);
}

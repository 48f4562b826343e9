// The keys of each record, and text from outside.
#include <algorithm>
#include <set>

#include <unistd.h>

#include "base/asked_names.h"
#include "catch.h"
#include "unit/events/journal_fixture.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

namespace {

std::set<std::string> keys_of(const json &line) {
  std::set<std::string> keys;
  for (const auto &[key, value] : line.items()) {
    keys.insert(key);
  }
  return keys;
}

std::vector<json> log_of(const std::vector<events::DeviceFacts> &devices) {
  const ScratchFolder folder;
  std::string problem;
  events::JournalOptions options = logging_to(folder / "log");
  options.meta.settings = {{"limit", "4g", "environment"}, {"limit", "8g", "system file", "/f:1:2", true}};
  options.meta.foreign = {{"GPU_MEMORY_LIMIT", "1", "overridden", "RATION_LIMIT=4g takes precedence"}};
  options.meta.environment = {{"RATION_LIMIT", "4g"}};
  events::Journal journal(options, problem);
  REQUIRE(problem.empty());
  journal.describe(devices, 13000);
  journal.record(an_alloc(0x7f3a00000200, 4096, 1));
  events::Alloc small = an_alloc(0x7f3a00010000, 512);
  small.requested = 10;
  small.via = events::Via::runtime;
  journal.record(small);
  journal.record(a_free(0x7f3a00000200, 4096, 1));
  journal.record(an_oom(events::Reason::limit, 1));
  journal.count_failed_alloc();
  journal.count_failed_free();
  journal.count_failed_free();
  journal.count_null_free();
  RationCoverage asked{};
  asked.unknown_versions = 3;
  note_name(asked.unknown_names, "cuDeviceGetNovelty");
  note_name(asked.unknown_names, "cuMemNovelty");
  note_name(asked.newer, "cuMemAlloc@14000");
  journal.end(&asked);
  return log_lines(folder / "log");
}

}  // namespace

TEST_CASE("a log is meta, its events and end, each a JSON object in a line of its own") {
  const std::vector<json> lines = log_of(two_devices());
  std::vector<std::string> types;
  for (const json &line : lines) {
    types.push_back(line.at("t"));
  }
  CHECK(types == std::vector<std::string>{"meta", "alloc", "alloc", "free", "oom", "end"});
  CHECK(is_consecutive(lines));
}

TEST_CASE("the first line names the program, the host and the settings") {
  const std::vector<json> lines = log_of(two_devices());
  const json &meta = lines.front();
  CHECK(keys_of(meta) == std::set<std::string>{"t", "schema", "ver", "pid", "ppid", "host", "exe", "argv", "tree",
                                               "start_unix_ns", "clock", "driver", "mode", "devices", "settings",
                                               "foreign", "env"});
  CHECK(meta.at("schema") == "ration.events/1");
  CHECK(meta.at("pid") == getpid());
  CHECK(meta.at("ppid") == getppid());
  CHECK(meta.at("clock") == "monotonic");
  CHECK(meta.at("driver") == 13000);
  CHECK(meta.at("mode") == "direct");
  CHECK(meta.at("start_unix_ns").get<std::int64_t>() > 1'700'000'000'000'000'000);
  CHECK(meta.at("argv").at(0).get<std::string>().find("unit_events") != std::string::npos);
  CHECK(meta.at("exe").get<std::string>().find("unit_events") != std::string::npos);
  const json ceiling = {{"value", "8g"}, {"source", "system file"}, {"place", "/f:1:2"}, {"locked", true}};
  CHECK(meta.at("settings").at("limit") ==
        json{{"value", "4g"}, {"source", "environment"}, {"beside", json::array({ceiling})}});
  const json word = {{"variable", "GPU_MEMORY_LIMIT"},
                     {"value", "1"},
                     {"standing", "overridden"},
                     {"reason", "RATION_LIMIT=4g takes precedence"}};
  CHECK(meta.at("foreign") == json::array({word}));
  CHECK(meta.at("env").at("RATION_LIMIT") == "4g");
  REQUIRE(meta.at("devices").size() == 2);
  CHECK(meta.at("devices").at(0) == json{{"dev", 0},
                                         {"uuid", "GPU-0001"},
                                         {"name", "one"},
                                         {"total", 16ull << 30},
                                         {"limit", 4ull << 30},
                                         {"limit_asked", true}});
}

TEST_CASE("an alloc record has the requested size, the charge and the route of the call") {
  const json lines = log_of(two_devices());
  const json &alloc = lines.at(2);
  CHECK(keys_of(alloc) == std::set<std::string>{"t", "ts", "tid", "dev", "ctx", "stream", "api", "via", "kind", "addr",
                                                "size", "req", "src", "dur", "seq"});
  CHECK(alloc.at("addr") == "0x7f3a00010000");
  CHECK(alloc.at("size") == 512);
  CHECK(alloc.at("req") == 10);
  CHECK(alloc.at("via") == "runtime");
  CHECK(alloc.at("kind") == "device");
  CHECK(alloc.at("src") == "driver");
  CHECK(alloc.at("tid") == gettid());
  CHECK(alloc.at("stream") == 0);
  CHECK(lines.at(1).at("via") == "driver");
  CHECK(lines.at(1).at("dev") == 1);
  CHECK(lines.at(1).at("ts") <= alloc.at("ts"));
}

TEST_CASE("a free record repeats address and size of its block") {
  const json line = log_of(two_devices()).at(3);
  CHECK(keys_of(line) ==
        std::set<std::string>{"t", "ts", "tid", "dev", "ctx", "stream", "api", "kind", "addr", "size", "src", "seq"});
  CHECK(line.at("src") == "driver");
  CHECK(line.at("addr") == "0x7f3a00000200");
  CHECK(line.at("size") == 4096);
  CHECK(line.at("stream") == 0);
}

TEST_CASE("an oom record has what was held and what was left") {
  const json line = log_of(two_devices()).at(4);
  CHECK(keys_of(line) == std::set<std::string>{"t", "ts", "tid", "dev", "api", "req", "reason", "used", "limit",
                                               "device_free", "largest_free", "reserved", "quarantined", "capturing",
                                               "seq"});
  CHECK(line.at("req") == 1000);
  CHECK(line.at("used") == 10);
  CHECK(line.at("limit") == 20);
  CHECK(line.at("device_free") == 30);
  CHECK(line.at("largest_free") == 5);
}

TEST_CASE("every reason of a denial has the contract's name") {
  const std::pair<events::Reason, std::string> names[] = {{events::Reason::limit, "limit"},
                                                          {events::Reason::group, "group"},
                                                          {events::Reason::device, "device"},
                                                          {events::Reason::pool_holds, "pool_holds"},
                                                          {events::Reason::fault, "fault"}};
  STATIC_REQUIRE(std::size(names) == events::kReasonCount);
  for (const auto &[reason, name] : names) {
    CHECK(events::name_of(reason) == name);
  }
}

TEST_CASE("the last line has each device's peak and live blocks, and every count") {
  const json end = log_of(two_devices()).back();
  CHECK(keys_of(end) == std::set<std::string>{"t",
                                              "ts",
                                              "status",
                                              "peak",
                                              "reserved_peak",
                                              "live",
                                              "granules_peak",
                                              "stitched",
                                              "overhead",
                                              "allocs",
                                              "frees",
                                              "ooms",
                                              "refused_ipc",
                                              "waits",
                                              "failed_allocs",
                                              "failed_frees",
                                              "null_frees",
                                              "unknown_names",
                                              "unknown",
                                              "unknown_versions",
                                              "newer",
                                              "dropped",
                                              "seq"});
  CHECK(end.at("status") == "exit");
  CHECK(end.at("peak") == json{512, 4096});
  CHECK(end.at("reserved_peak") == json{512, 4096});
  CHECK(end.at("live") == json{{{"dev", 0}, {"count", 1}, {"bytes", 512}}, {{"dev", 1}, {"count", 0}, {"bytes", 0}}});
  CHECK(end.at("granules_peak") == json{0, 0});
  CHECK(end.at("stitched") == json{0, 0});
  CHECK(end.at("allocs") == 2);
  CHECK(end.at("frees") == 1);
  CHECK(end.at("ooms") == 1);
  CHECK(end.at("refused_ipc") == 0);
  CHECK(end.at("waits") == 0);
  CHECK(end.at("failed_allocs") == 1);
  CHECK(end.at("failed_frees") == 2);
  CHECK(end.at("null_frees") == 1);
  CHECK(end.at("unknown_names") == 2);
  CHECK(end.at("unknown") == json{"cuMemNovelty", "cuDeviceGetNovelty"});
  CHECK(end.at("unknown_versions") == 3);
  CHECK(end.at("newer") == json{"cuMemAlloc@14000"});
  CHECK(end.at("dropped") == 0);
}

TEST_CASE("the last line stays within a page of the file, however many names it has and however long they are") {
  for (const std::size_t length : {3U, 20U, 80U}) {
    const ScratchFolder folder;
    std::string problem;
    events::Journal journal(logging_to(folder / "log"), problem);
    journal.describe(std::vector<events::DeviceFacts>(1, two_devices().front()), 0);
    RationCoverage asked{};
    for (int i = 1000; i < 2000; ++i) {
      note_name(asked.unknown_names, ("cuMem" + std::to_string(i) + std::string(length, 'x')).c_str());
      note_name(asked.newer, ("cuMem" + std::to_string(i) + std::string(length, 'x') + "@99999").c_str());
    }
    journal.end(&asked);
    const json end = log_lines(folder / "log").back();
    CHECK(end.dump().size() <= 4096);
    CHECK(end.at("unknown_names") == 1000);
    CHECK(end.at("unknown").size() >= std::min<std::size_t>(2200 / (12 + length), RATION_NAMES_KEPT));
    CHECK(end.at("unknown").at(0) == "cuMem1000" + std::string(length, 'x'));
    CHECK(end.at("newer").size() >= 6);
  }
}

TEST_CASE("a stream-ordered free names its stream") {
  events::Free event = a_free(0x1000, 1);
  event.stream = 2;
  CHECK(json::parse(written(event)).at("stream") == 2);
}

TEST_CASE("text from outside cannot break the first line, whatever its bytes") {
  const std::string hostile = "\"tree\":\"fake\"\n\r\t\x01\x7f\\ \xff\xfe\xc3 \xed\xa0\x80 \xf0\x9f\x92\xbe";
  events::Meta meta;
  meta.mode = hostile;
  meta.driver_version = 0;
  meta.devices = {{0, hostile, hostile, 1, 1, false}};
  meta.settings = {{hostile, hostile, "user file", hostile}};
  meta.foreign = {{hostile, hostile, hostile, hostile}};
  meta.environment = {{"RATION_" + hostile, hostile}};
  const events::Process process{1, 2, hostile, hostile, "1-2", {hostile, "", std::string(1 << 20, '\xff')}, 3};
  const std::string text = events::meta_line(meta, process);
  REQUIRE(text.back() == '\n');
  CHECK(text.find('\n') == text.size() - 1);
  const json line = json::parse(text);
  CHECK(line.at("tree") == "1-2");
  CHECK(line.at("argv").at(1) == "");
  const std::string argument = line.at("argv").at(0);
  CHECK(argument.substr(0, 15) == "\"tree\":\"fake\"\n\r");
  CHECK(argument.find("\xef\xbf\xbd") != std::string::npos);
  CHECK(argument.find("\xf0\x9f\x92\xbe") != std::string::npos);
}

TEST_CASE("numbers of any length are written as they are") {
  const ScratchFolder folder;
  std::string problem;
  std::vector<std::uint64_t> numbers{0, UINT64_MAX, UINT64_MAX - 1};
  std::uint64_t power = 1;
  for (int digits = 1; digits <= 20; ++digits, power *= 10) {
    numbers.insert(numbers.end(), {power - 1, power, power + 1, power / 3, power / 7 * 5, power + power / 11});
  }
  {
    events::Journal journal(logging_to(folder / "log"), problem);
    REQUIRE(problem.empty());
    journal.describe(two_devices(), 13000);
    for (const std::uint64_t number : numbers) {
      events::Free event = a_free(number, number, 1);
      event.stream = number;
      journal.record(event);
    }
  }
  std::size_t at = 0;
  for (const json &line : log_lines(folder / "log")) {
    if (line["t"] == "free") {
      CHECK(line["size"].get<std::uint64_t>() == numbers.at(at));
      CHECK(line["stream"].get<std::uint64_t>() == numbers.at(at));
      ++at;
    }
  }
  CHECK(at == numbers.size());
}

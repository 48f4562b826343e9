// Ration's logs as traces: which pool of a log is replayed, and how incomplete logs are read.
#include "tests/bench/pool_replay/log_trace.h"

#include <lzma.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "logs/replay/replay.h"
#include "replay_program.h"
#include "tests/bench/pool_replay/input.h"

using namespace ration::pool::replay;

namespace {

// A log as the shim writes it, one line a call.
class Log {
 public:
  Log &meta(int process, const std::string &schema = "ration.events/1") {
    sequence_ = 0;
    return line(R"({"t":"meta","schema":")" + schema + R"(","ver":"0.1.0","pid":)" + std::to_string(process) +
                R"(,"tree":"a b","devices":[{"dev":0,"size":9,"addr":"0x1"}],"env":{"t":"alloc"},"argv":["\u00e9"]})");
  }
  Log &alloc(std::uint64_t address, std::uint64_t bytes, int device = 0, int context = 1,
             const std::string &kind = "device", const std::string &api = "cuMemAlloc_v2") {
    const std::uint64_t size = (bytes + 511) / 512 * 512;
    return record(R"("t":"alloc","tid":7,"dev":)" + std::to_string(device) + R"(,"ctx":)" + std::to_string(context) +
                  R"(,"stream":0,"api":")" + api + R"(","via":"driver","kind":")" + kind + R"(","addr":")" +
                  hex(address) + R"(","size":)" + std::to_string(size) + R"(,"req":)" + std::to_string(bytes) +
                  R"(,"src":"pool","slab":1,"dur":900,"ts":12)");
  }
  Log &free(std::uint64_t address) {
    return record(R"("t":"free","tid":7,"dev":0,"ctx":1,"stream":0,"api":"cuMemFree_v2","addr":")" + hex(address) +
                  R"(","size":512,"src":"pool","ts":13)");
  }
  Log &record(const std::string &keys) {
    return line(std::string(1, '{').append(keys).append(",\"seq\":").append(std::to_string(++sequence_)).append("}"));
  }
  Log &line(const std::string &text) {
    text_ += text + "\n";
    return *this;
  }
  Log &lose(int records) {
    sequence_ += static_cast<std::uint64_t>(records);
    return *this;
  }
  Log &cut(std::size_t bytes) {
    text_.resize(text_.size() - bytes);
    return *this;
  }
  [[nodiscard]] const std::string &text() const { return text_; }

 private:
  static std::string hex(std::uint64_t number) {
    std::ostringstream text;
    text << "0x" << std::hex << number;
    return text.str();
  }

  std::string text_;
  std::uint64_t sequence_ = 0;
};

LogTrace parse(const Log &log, const LogSelection &selection = {}) {
  return parse_log("log", log.text(), selection);
}

// The trace in its own text format.
std::string text_of(const Trace &trace) {
  std::ostringstream text;
  for (const Operation &operation : trace.operations) {
    text << (operation.is_free ? "f " : "a ") << trace.names[operation.id];
    if (!operation.is_free) text << ' ' << operation.bytes;
    text << "; ";
  }
  return text.str();
}

std::string refusal(const Log &log, const LogSelection &selection = {}) {
  try {
    (void)parse(log, selection);
  } catch (const TraceError &error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the trace of a log has its requests and frees, named by record numbers") {
  Log log;
  log.meta(7).alloc(0x7f00, 1000).alloc(0x9000, 5).free(0x7f00).alloc(0x7f00, 512).free(0x9000);
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 1 1000; a 2 5; f 1; a 4 512; f 2; ");
  CHECK(read.trace.peak_bytes == 1005);
  CHECK(read.pools == 1);
  CHECK(read.flaws.empty());
}

TEST_CASE("records other than allocations and frees are skipped silently") {
  Log log;
  log.meta(7)
      .record(R"("t":"slab_alloc","dev":0,"ctx":1,"slab":1,"addr":"0x7000","size":65536)")
      .alloc(0x7f00, 1000)
      .record(R"("t":"wait","dev":0,"api":"cuMemAlloc_v2","how":"event","blocks":1,"bytes":512,"result":0)")
      .record(R"("t":"trim","dev":0,"api":"cuMemAlloc_v2","slabs":1,"bytes":512)")
      .record(R"("t":"oom","dev":0,"api":"cuMemAlloc_v2","req":9000,"reason":"limit","used":1000)")
      .record(R"("t":"of_a_later_version","addr":"0x7f00","size":[{"deep":[1,2]}])")
      .line("   ")
      .free(0x7f00)
      .record(R"("t":"slab_free","dev":0,"ctx":1,"slab":1,"addr":"0x7000","size":65536)")
      .record(R"("t":"end","status":"exit","peak":[1000],"live":[{"dev":0,"count":0,"bytes":0}])");
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 2 1000; f 2; ");
  CHECK(read.flaws.empty());
}

TEST_CASE("memory that no pool serves is left out, and so is its free") {
  Log log;
  log.meta(7).alloc(0x100, 1000, 0, 1, "host").alloc(0x7f00, 10).free(0x100).alloc(0x100, 20);
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 2 10; a 4 20; ");
  CHECK(read.flaws.empty());
}

TEST_CASE("a pitched block is replayed with all its rows") {
  Log log;
  log.meta(7).record(R"("t":"alloc","dev":0,"ctx":1,"api":"cuMemAllocPitch_v2","kind":"device","addr":"0x200",)"
                     R"("size":51200,"req":1000)");
  CHECK(parse(log).trace.peak_bytes == 51200);
}

TEST_CASE("the pool with the highest peak is replayed, or the selected one") {
  Log log;
  log.meta(7).alloc(0x1000, 100, 0, 1).alloc(0x2000, 300, 1, 2).free(0x1000).alloc(0x3000, 200, 1, 3);
  log.meta(8).alloc(0x1000, 50, 1, 1);
  const auto selected = [&log](const LogSelection &selection) {
    const LogTrace read = parse(log, selection);
    CHECK(read.pools == 4);
    return std::vector<std::uint64_t>{read.trace.peak_bytes, read.pool.process, read.pool.device, read.pool.context};
  };
  using Numbers = std::vector<std::uint64_t>;
  CHECK(selected({}) == Numbers{300, 7, 1, 2});
  CHECK(selected({{}, 0, {}}) == Numbers{100, 7, 0, 1});
  CHECK(selected({{}, 1, 3}) == Numbers{200, 7, 1, 3});
  CHECK(selected({8, {}, {}}) == Numbers{50, 8, 1, 1});
  const std::string none = refusal(log, {{}, 2, {}});
  CHECK(none.find("device 0 context 1 of process 7") != std::string::npos);
  CHECK(none.find("device 1 context 1 of process 8") != std::string::npos);
}

TEST_CASE("the peak of live bytes decides, not the sum of all bytes") {
  Log log;
  log.meta(7).alloc(0x9000, 200, 1, 2);
  for (int turn = 0; turn < 5; ++turn) log.alloc(0x1000, 100, 0, 1).free(0x1000);
  CHECK(parse(log).pool.device == 1);
}

TEST_CASE("equal addresses of two processes are different blocks") {
  Log log;
  log.meta(7).alloc(0x1000, 100).meta(8).alloc(0x1000, 90).free(0x1000);
  const LogTrace first = parse(log);
  CHECK(text_of(first.trace) == "a 1 100; ");
  CHECK(first.flaws.empty());
  CHECK(text_of(parse(log, {8, {}, {}}).trace) == "a 1 90; f 1; ");
}

TEST_CASE("lost records are reported and repaired as far as possible") {
  Log log;
  log.meta(7).alloc(0x1000, 100).alloc(0x2000, 100);
  log.record(R"("t":"dropped","count":3)");
  log.free(0x5000).alloc(0x1000, 700).free(0x1000).free(0x1000);
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 1 100; a 2 100; f 1; a 5 700; f 5; ");
  CHECK(read.flaws == std::vector<std::string>{"missing records: 3",
                                               "blocks that a new one overlaps without a free, freed there: 1",
                                               "frees of blocks without an allocation, skipped: 2"});
}

TEST_CASE("a block ends when a new one overlaps any part of it") {
  Log log;
  log.meta(7).alloc(0x1000, 512).alloc(0x1200, 512).alloc(0x1400, 512).alloc(0x1600, 512).alloc(0x1300, 1024);
  // 0x1300 to 0x1700 touches three of the four.
  CHECK(text_of(parse(log).trace) == "a 1 512; a 2 512; a 3 512; a 4 512; f 4; f 3; f 2; a 5 1024; ");
  Log adjacent;
  adjacent.meta(7).alloc(0x1000, 512).alloc(0x1400, 512).alloc(0x1200, 512);
  CHECK(text_of(parse(adjacent).trace) == "a 1 512; a 2 512; a 3 512; ");
}

TEST_CASE("the handle of an array or of physical memory is no address") {
  for (const std::string kind : {"array", "vmm"}) {
    Log log;
    log.meta(7).alloc(0x1000, 100).alloc(0x800, 4096, 0, 1, kind).alloc(0x1000, 64, 0, 1, kind);
    log.record(R"("t":"free","tid":7,"dev":0,"ctx":1,"api":"any","kind":")" + kind + R"(","addr":"0x1000","size":64)");
    log.free(0x1000);
    const LogTrace read = parse(log);
    CHECK(text_of(read.trace) == "a 1 100; f 1; ");
    CHECK(read.flaws.empty());
  }
}

TEST_CASE("missing records are counted by their numbers") {
  Log log;
  log.meta(7).lose(4).alloc(0x1000, 100).lose(1).alloc(0x2000, 100);
  CHECK(parse(log).flaws == std::vector<std::string>{"missing records: 5"});
}

TEST_CASE("a truncated last line is left out and reported") {
  Log log;
  log.meta(7).alloc(0x1000, 100).alloc(0x2000, 100).cut(9);
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 1 100; ");
  CHECK(read.flaws == std::vector<std::string>{"the last line is truncated"});
  Log whole;
  whole.meta(7).alloc(0x1000, 100).cut(1);
  CHECK(parse(whole).flaws.empty());
}

TEST_CASE("damaged lines are skipped and the first is named") {
  for (const char *damaged :
       {"{\"t\":\"alloc\"", "[1]", "x", "{\"t\":5,\"seq\":2}", "{\"t\":\"alloc\",\"seq\":2}", "{\"seq\":2}",
        R"({"t":"free","addr":4096,"seq":2})", R"({"t":"free","addr":"0x10z","seq":2})",
        R"({"t":"free","addr":"__1000","seq":2})", R"({"t":"free","addr":"0x1000","seq":2)",
        R"({"t":"free","addr":"0x1000","seq":2}})", R"({"t":"dropped","seq":2})",
        R"({"t":"alloc","dev":0,"ctx":1,"kind":"device","addr":"0x9000","size":512,"req":0,"seq":2})",
        R"({"t":"alloc","dev":0,"ctx":1,"kind":"device","addr":"0x9000","size":512,"req":281474976710657,"seq":2})",
        R"({"t":"alloc","dev":0,"ctx":1,"kind":"device","addr":"0xffffffffffffffff","size":512,"req":9,"seq":2})",
        R"({"t":"alloc","dev":-1,"ctx":1,"kind":"device","addr":"0x9000","size":512,"req":9,"seq":2})",
        R"({"t":"alloc","dev":0,"ctx":1.5,"kind":"device","addr":"0x9000","size":512,"req":9,"seq":2})"}) {
    CAPTURE(damaged);
    Log log;
    log.meta(7).alloc(0x1000, 100).line(damaged).lose(1).free(0x1000);
    const LogTrace read = parse(log);
    CHECK(text_of(read.trace) == "a 1 100; f 1; ");
    const std::string line = "damaged lines, skipped: 1, first line 3";
    CHECK(std::count(read.flaws.begin(), read.flaws.end(), line) == 1);
  }
}

TEST_CASE("record numbers that go back start another process, with or without a first line") {
  Log headless;
  headless.alloc(0x1000, 100).alloc(0x2000, 100);
  Log log;
  log.meta(7).alloc(0x1000, 50).free(0x1000).line(headless.cut(1).text());
  const LogTrace read = parse(log);
  CHECK(text_of(read.trace) == "a 1 100; a 2 100; ");
  CHECK(read.pool.process == 0);
  CHECK(read.flaws ==
        std::vector<std::string>{"`seq` goes back: assumed to be another process without its first line"});
  CHECK(parse(log, {7, {}, {}}).flaws.empty());
}

TEST_CASE("a file that is no log of this schema, or has no block, is rejected") {
  CHECK(refusal(Log().meta(7, "ration.events/2").alloc(0x1000, 1)).find(":1: the schema `ration.events/2`") !=
        std::string::npos);
  CHECK(refusal(Log().meta(7)).find("no allocation") != std::string::npos);
  CHECK(refusal(Log().line("{")).find("no allocation") != std::string::npos);
  CHECK(refusal(Log().meta(7).alloc(0x1000, 1ull << 48).alloc(1ull << 60, 1ull << 48)).find("256 TiB") !=
        std::string::npos);
}

TEST_CASE("the content of a file decides whether it is a trace or a log") {
  Log log;
  log.meta(7).alloc(0x1000, 100);
  std::string packed(lzma_stream_buffer_bound(log.text().size()), '\0');
  std::size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                                  reinterpret_cast<const std::uint8_t *>(log.text().data()), log.text().size(),
                                  reinterpret_cast<std::uint8_t *>(packed.data()), &size, packed.size()) == LZMA_OK);
  for (const std::string &content : {log.text(), "\n " + log.text(), packed.substr(0, size)}) {
    const Input input = parse_input("x", content, {});
    REQUIRE(input.pool);
    CHECK(input.trace.peak_bytes == 100);
  }
  CHECK_FALSE(parse_input("x", "a 0 100\n", {}).pool);
  CHECK_THROWS_AS(parse_input("x", "a 0 100\n", {{}, 0, {}}), TraceError);
}

TEST_CASE("the program reports which pool of a log it replayed, and what the log lacks") {
  const Folder folder;
  Log log;
  log.meta(7).alloc(0x1000, 100).meta(8).alloc(0x1000, 3000, 2, 4).lose(1).free(0x1000);
  const std::string file = "--trace " + folder.write("run.jsonl", log.text());
  const Ran most = run(file + " --json");
  CHECK(most.status == 0);
  CHECK(most.output.find(R"("process":8,"device":2,"context":4,"pools":2,"exact":false)") != std::string::npos);
  CHECK(most.output.find("run.jsonl: missing records: 1") != std::string::npos);
  const Ran first = run(file + " --device 0 --context 1 --process 7");
  CHECK(first.status == 0);
  CHECK(first.output.find("missing") == std::string::npos);
  CHECK(first.output.find("one of 2 pools: device 0, context 1, process 7") != std::string::npos);
  CHECK(run(file + " --device 1").status == 2);
  CHECK(run(file + " --device -1").status == 2);
}

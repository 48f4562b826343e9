// The contract of the replay library and of the program pool_replay.
#include "tests/bench/pool_replay/replay.h"

#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>

#include "catch.h"
#include "replay_program.h"

using namespace ration::pool::replay;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Random sizes, a few long-lived blocks among many short-lived ones. Deterministic by seed.
std::string random_trace(unsigned seed) {
  std::mt19937 random(seed);
  std::ostringstream text;
  text << "# ration-trace 1\n";
  std::vector<bool> live(200);
  for (int step = 0; step < 6000; ++step) {
    const std::size_t id = random() % live.size();
    if (live[id]) {
      if (id < 20 && random() % 8 != 0) continue;
      text << "f " << id << '\n';
    } else {
      text << "a " << id << ' ' << (std::uint64_t{1} << random() % 17) + random() % 999 << '\n';
    }
    live[id] = !live[id];
  }
  return text.str();
}

// The error of a trace file, or empty.
std::string refusal(const std::string &path) {
  try {
    (void)read_trace(path);
  } catch (const TraceError &error) {
    return error.what();
  }
  return "";
}

// Checks every granule of the arena. The first error, or empty.
std::string check_placements(const Trace &trace, const std::string &placements, std::uint64_t arena_bytes) {
  constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  std::vector<std::uint64_t> owner(arena_bytes / 512, kNobody);
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> live;
  std::istringstream lines(placements);
  for (const Operation &operation : trace.operations) {
    std::string kind;
    std::uint64_t id = 0;
    lines >> kind >> id;
    if (kind != (operation.is_free ? "f" : "a") || id != trace.names[operation.id])
      return "another operation than the trace's";
    if (operation.is_free) {
      const auto [first, end] = live[id];
      for (std::uint64_t granule = first; granule < end; ++granule) owner[granule] = kNobody;
      continue;
    }
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    lines >> offset >> bytes;
    if (bytes != operation.bytes) return "another size than the trace's";
    if (offset % 512 != 0) return "not aligned";
    if (bytes > arena_bytes || offset > arena_bytes - bytes) return "beyond the arena";
    live[id] = {offset / 512, (offset + bytes + 511) / 512};
    for (std::uint64_t granule = live[id].first; granule < live[id].second; ++granule) {
      if (owner[granule] != kNobody) return "two owners";
      owner[granule] = id;
    }
  }
  std::string more;
  return lines && !(lines >> more) ? "" : "more or fewer lines than operations";
}

}  // namespace

TEST_CASE("every placement lies in the arena, aligned, and overlaps no other") {
  const Folder folder;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Trace trace = read_trace(folder.write("t", random_trace(seed)));
    const std::uint64_t arena = find_minimum(trace);
    std::ostringstream placements;
    REQUIRE_FALSE(replay(trace, arena, Backing::slab, &placements));
    CHECK(check_placements(trace, placements.str(), arena) == "");
  }
}

TEST_CASE("the placement check catches each kind of error") {
  const Trace trace = read_trace(Folder().write("t", "a 0 512\na 1 513\nf 0\n"));
  CHECK(check_placements(trace, "a 0 512 512\na 1 1024 513\nf 0\n", 2048) == "");
  for (const char *wrong :
       {"a 0 600 512\na 1 1536 513\nf 0\n", "a 0 512 512\na 1 1536 513\nf 0\n", "a 0 1536 512\na 1 1024 513\nf 0\n",
        "a 0 512 512\na 1 1024 513\n", "a 0 512 511\na 1 1024 513\nf 0\n",
        "a 0 512 512\na 1 1024 513\nf 0\na 2 512 1\n", "a 1 512 512\na 1 1024 513\nf 0\n"}) {
    CAPTURE(wrong);
    CHECK(check_placements(trace, wrong, 2048) != "");
  }
}

TEST_CASE("peaks are those of the requested bytes") {
  const Trace trace = read_trace(Folder().write("t", "# x\na 0 100\na 1 1000\nf 0\na 2 5\nf 1\nf 2\n"));
  CHECK(trace.peak_bytes == 1100);
  CHECK(trace.peak_live == 2);
  CHECK(trace.ids == 3);
  CHECK(trace.operations.size() == 6);
}

TEST_CASE("the smallest arena completes and one 0.05 percent smaller fails") {
  const Folder folder;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Trace trace = read_trace(folder.write("t", random_trace(seed)));
    const std::uint64_t arena = find_minimum(trace);
    CHECK_FALSE(replay(trace, arena));
    // Fitting is not monotonic in between; below the peak nothing fits.
    CHECK(replay(trace, trace.peak_bytes - 1));
    CHECK(arena >= trace.peak_bytes);
  }
  const Trace one = read_trace(folder.write("one", "a 0 104857600\nf 0\n"));
  CHECK(find_minimum(one) >= one.peak_bytes);
  CHECK(find_minimum(one) <= one.peak_bytes + one.peak_bytes / 2000 + 1);
}

TEST_CASE("a trace that does not fit stops at the failed operation") {
  const Trace trace = read_trace(Folder().write("t", "a 0 1000\nf 0\na 1 512\na 2 1024\na 3 1\n"));
  const auto stop = replay(trace, 3 * 512);
  REQUIRE(stop);
  CHECK(stop->operation == 5);
  CHECK(stop->bytes == 1);
  CHECK(stop->largest_free == 0);
}

TEST_CASE("a malformed trace is rejected with its line") {
  const Folder folder;
  const std::map<std::string, std::string> wrong = {{"a 0 10\nx 1\n", ":2: "},
                                                    {"a 0\n", ":1: "},
                                                    {"a 0 0\n", ":1: "},
                                                    {"a 0 10 10\n", ":1: "},
                                                    {"a -1 10\n", ":1: "},
                                                    {"# c\n\nf 0\n", ":3: block 0 is not live"},
                                                    {"a 0 1\na 0 1\n", "is already live"},
                                                    {"a 4294967295 1\n", ":1: "},
                                                    {"a 0 99999999999999999999\n", ":1: "},
                                                    {"a 0 281474976710657\n", "block 0 is larger than 256 TiB"},
                                                    {"a 0 281474976710656\na 1 1\n", "more than 256 TiB"},
                                                    {"# nothing\n", "no operation"},
                                                    {"", "no operation"}};
  for (const auto &[content, part] : wrong) {
    CAPTURE(content);
    CHECK(refusal(folder.write("t", content)).find(part) != std::string::npos);
  }
  CHECK_THROWS_AS(read_trace(folder.file("absent")), TraceError);
}

TEST_CASE("sparse block numbers are accepted and kept in the placements") {
  const Trace trace = read_trace(Folder().write("t", "a 4294967294 512\na 7 512\nf 4294967294\na 4294967294 1\n"));
  CHECK(trace.ids == 2);
  std::ostringstream placements;
  REQUIRE_FALSE(replay(trace, 4096, Backing::slab, &placements));
  CHECK(check_placements(trace, placements.str(), 4096) == "");
  CHECK(placements.str().starts_with("a 4294967294 "));
}

TEST_CASE("a trace that no arena can hold is rejected") {
  const Trace trace = read_trace(Folder().write("t", "a 0 281474976710000\na 1 600\n"));  // rounded up, too large
  CHECK_THROWS_AS(find_minimum(trace), TraceError);
}

TEST_CASE("several threads replay the trace against one pool") {
  const Trace trace = read_trace(Folder().write("t", random_trace(6)));
  const Measurement measured = measure(trace, 8 * find_minimum(trace), 4);
  CHECK_FALSE(measured.stop);
  CHECK(measured.alloc_ns.size() + measured.free_ns.size() == 4 * trace.operations.size());
  CHECK(measured.pair_ns_mean > 0);
  CHECK(measured.metadata_bytes_per_block > 0);
  CHECK(measure(trace, trace.peak_bytes, 4).stop);
}

TEST_CASE("the program prints every promised key") {
  const Folder folder;
  const std::string trace = folder.write("t", random_trace(7));
  const Ran ran = run("--trace " + trace + " --find-min --json");
  CHECK(ran.status == 0);
  for (const char *key : {"peak_bytes", "min_arena_bytes", "min_arena_ratio", "alloc_ns_median", "alloc_ns_p99",
                          "free_ns_median", "free_ns_p99", "pair_ns_mean", "metadata_bytes_per_block"}) {
    CHECK(ran.output.find(std::string(1, '"').append(key).append("\":")) != std::string::npos);
  }
  CHECK(ran.output.find("\"peak_bytes\":" + std::to_string(read_trace(trace).peak_bytes)) != std::string::npos);
}

TEST_CASE("the program's placements are those of the reported arena") {
  const Folder folder;
  const std::string path = folder.write("t", random_trace(8));
  const Ran ran = run("--trace " + path + " --arena 64MiB --threads 1 --backing slab --placements " + folder.file("p"));
  REQUIRE(ran.status == 0);
  std::ostringstream placements;
  placements << std::ifstream(folder.file("p")).rdbuf();
  CHECK(check_placements(read_trace(path), placements.str(), 64 * kMiB) == "");
}

TEST_CASE("the program exits with 1 and names the operation when a trace does not fit") {
  const Folder folder;
  const std::string trace = folder.write("t", "a 0 1048576\na 1 1048576\n");
  const Ran ran = run("--trace " + trace + " --arena 2097000");
  CHECK(ran.status == 1);
  CHECK(ran.output.find("operation 2 requests 1048576") != std::string::npos);
  // One copy fits, the second does not.
  CHECK(run("--trace " + trace + " --arena 2MiB --threads 2").status == 1);
}

TEST_CASE("the program rejects wrong usage with 2 and a message") {
  const Folder folder;
  const std::string trace = "--trace " + folder.write("t", "a 0 1\n") + " ";
  const std::map<std::string, std::string> wrong = {
      {trace + "--backing arena", "`arena` is not a backing"},
      {trace + "--backing tape", "tape"},
      {trace + "--arena 8XB", "\"XB\" is not a unit"},
      {trace + "--arena 8Gib", "likely meant: 8GiB"},
      {trace + "--arena 50%", "a percentage has no meaning here"},
      {trace + "--arena 257TiB", "is not a size"},
      {trace + "--arena 99999999999999999999", "is not a size"},
      {trace + "--arena -1", "`-1` is not a size"},
      {trace + "--arena 0", "`0` is not a size"},
      {trace + "--arena 1g --find-min", "--find-min"},
      {trace + "--threads 0", "--threads"},
      {trace + "--threads 2 --placements " + folder.file("p"), "--threads"},
      {trace + "--placements " + folder.file("no/such"), "no/such"},
      {"--trace " + folder.file("absent"), "absent"},
      {"--frobnicate", "--trace"},
      {"", "--trace"}};
  for (const auto &[arguments, part] : wrong) {
    CAPTURE(arguments);
    const Ran ran = run(arguments);
    CHECK(ran.status == 2);
    CHECK(ran.output.find(part) != std::string::npos);
  }
}

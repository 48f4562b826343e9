// The order of records, the totals, and records after the end.
#include <thread>

#include "catch.h"
#include "unit/events/journal_fixture.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

namespace {

// What the threads of `device` leave: the driver blocks of every sixth round that starts at 3, and every other slab.
std::uint64_t reserved_after(int threads, int rounds, int device) {
  std::uint64_t bytes = 0;
  for (int thread = device; thread < threads; thread += 2) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t size = 100 + static_cast<unsigned>(thread * 7 + round % 13);
      bytes += (round % 6 == 3 ? size : 0) + (round % 10 == 5 ? size * 10 : 0);
    }
  }
  return bytes;
}

// One thread's part: blocks of the driver and of the pool, slabs that come and go, denials and waits.
void play(events::Journal &journal, int thread, int rounds) {
  const int device = thread % 2;
  const auto number = static_cast<std::uint64_t>(thread + 1);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t address = 0x1000000ull * number + static_cast<unsigned>(round);
    const std::uint64_t size = 100 + static_cast<unsigned>(thread * 7 + round % 13);
    const bool pooled = round % 2 == 0;
    journal.record(pooled ? a_pool_alloc(address, size, number, device) : an_alloc(address, size, device));
    if (round % 5 == 0) {
      journal.record(an_oom(events::Reason::limit, device));
      journal.record(a_slab_alloc(number, size * 10, device));
      journal.record(a_wait(device));
    }
    if (round % 3 != 0) {
      journal.record(pooled ? a_pool_free(address, size, device) : a_free(address, size, device));
    }
    if (round % 10 == 0) {
      journal.record(a_slab_free(number, size * 10, device));
      journal.record(a_refused_share(device));
    }
  }
}

void race(events::Journal &journal, int threads, int rounds) {
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&journal, thread, rounds] { play(journal, thread, rounds); });
  }
  for (std::thread &thread : running) {
    thread.join();
  }
}

void check_end_against_lines(const std::vector<json> &lines) {
  const Sums sums = sums_of(lines);
  const json &end = lines.back();
  REQUIRE(end.at("t") == "end");
  for (const unsigned device : {0u, 1u}) {
    CHECK(end.at("peak").at(device) == sums.peak.at(static_cast<int>(device)));
    CHECK(end.at("live").at(device).at("bytes") == sums.live.at(static_cast<int>(device)));
    CHECK(end.at("reserved_peak").at(device) == sums.reserved_peak.at(static_cast<int>(device)));
  }
  CHECK(end.at("allocs") == sums.allocs);
  CHECK(end.at("frees") == sums.frees);
  CHECK(end.at("ooms") == sums.ooms);
  CHECK(end.at("refused_ipc") == sums.refused_ipc);
  CHECK(end.at("waits") == sums.waits);
}

}  // namespace

TEST_CASE("eight racing threads leave consecutive records that add up to the end") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  race(journal, 8, 500);
  journal.end(nullptr);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  CHECK(of_type(lines, "alloc").size() == 4000);
  CHECK(of_type(lines, "slab_alloc").size() == 800);
  CHECK(of_type(lines, "slab_free").size() == 400);
  CHECK(lines.back().at("waits") == 800);
  CHECK(lines.back().at("refused_ipc") == 400);
  check_end_against_lines(lines);
  for (const int device : {0, 1}) {
    CHECK(journal.tally().devices[device].reserved_bytes == sums_of(lines).reserved.at(device));
  }
}

TEST_CASE("records after the end are in the log, and the last line is an end that counts them") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  journal.record(an_alloc(0x5000, 5'000'000'000));
  journal.record(an_alloc(0x6000, 1, 1));
  RationCoverage asked{};
  asked.unknown_versions = 2;
  journal.end(&asked);
  journal.record(a_wait());
  journal.record(a_free(0x5000, 5'000'000'000));
  journal.record(a_slab_alloc(1, 6'000'000'000));
  journal.record(a_slab_free(1, 6'000'000'000));
  journal.record(an_oom(events::Reason::device));
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(of_type(lines, "end").size() == 1);
  CHECK(is_consecutive(lines));
  check_end_against_lines(lines);
  CHECK(lines.back().at("unknown_versions") == 2);
}

TEST_CASE("a second end changes nothing") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  RationCoverage asked{};
  asked.unknown_versions = 1;
  journal.end(&asked);
  const std::string before = text_of(folder / "log");
  RationCoverage others{};
  others.unknown_versions = 9;
  journal.end(&others);
  CHECK(text_of(folder / "log") == before);
}

TEST_CASE("threads that race with the end lose no record") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  std::thread ending([&] { journal.end(nullptr); });
  race(journal, 4, 200);
  ending.join();
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  CHECK(of_type(lines, "end").size() == 1);
  check_end_against_lines(lines);
}

TEST_CASE("the first description of the devices writes the first line") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      journal.describe(two_devices(), 1);
      journal.record(an_oom(events::Reason::limit));
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(of_type(lines, "meta").size() == 1);
  CHECK(lines.front().at("t") == "meta");
  CHECK(lines.size() == 9);
}

TEST_CASE("a log without devices still starts with meta and ends with end") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.end(nullptr);
  const std::vector<json> lines = log_lines(folder / "log");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("devices").empty());
  CHECK(lines[1].at("t") == "end");
}

TEST_CASE("without a log the totals are kept, also under a race") {
  std::string problem;
  events::Journal journal(logging_to(""), problem);
  CHECK_FALSE(journal.logging());
  journal.describe(two_devices(), 0);
  race(journal, 8, 300);
  const events::DeviceTally &tally = journal.tally().devices[0];
  CHECK(tally.allocs == 1200);
  CHECK(tally.frees == 800);
  CHECK(tally.denied[static_cast<int>(events::Reason::limit)] == 240);
  CHECK(tally.peak_bytes >= tally.live_bytes);
  CHECK(tally.waits == 240);
  CHECK(journal.tally().refused_shares == 240);
  CHECK(tally.reserved_peak_bytes >= tally.reserved_bytes);
  CHECK(tally.reserved_bytes == reserved_after(8, 300, 0));
  CHECK(problem.empty());
}

#include "cli/usage/top_frame.h"

#include <algorithm>

#include "catch.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;

namespace {

Usage many(int processes) {
  std::vector<ledger::Member> members;
  for (int i = 1; i <= processes; ++i) {
    members.push_back(member(static_cast<std::uint64_t>(i), i, {use(kFirstGpu, static_cast<std::uint64_t>(i) * kMi)}));
  }
  return usage({group(GroupKind::kNamed, "nightly", {{kFirstGpu, 8 * kGi, kGi}}, members)});
}

bool shows(const Frame &frame, const std::string &text) {
  return std::any_of(frame.lines.begin(), frame.lines.end(),
                     [&text](const std::string &line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("at 80 columns and 24 lines a frame has a title, both tables and every key") {
  const Frame frame = frame_of(many(3), {}, 24, 80);
  REQUIRE(frame.lines.size() == 24);
  CHECK(frame.lines[0] == "ration top: 3 processes on 1 GPU, by reserved");
  CHECK(frame.title_line == 1);
  CHECK(frame.lines[1].find("PID PROGRAM") != std::string::npos);
  CHECK(frame.lines[2].find("3 train") == 2);
  CHECK(shows(frame, "nightly 1f2e3d4c 8.00GiB"));
  CHECK(frame.lines[23] == "sort: r reserved  u used  p pid  a age  g group  space pause  q quit");
}

TEST_CASE("a frame shows granules and stitched blocks where a process has granules") {
  Usage seen = many(3);
  CHECK_FALSE(shows(frame_of(seen, {}, 24, 100), "GRANULES"));
  seen.processes[0].use.stitching = {512, 2, 40};
  CHECK(shows(frame_of(seen, {}, 24, 100), "PEAK GRANULES STITCHED FAILS"));
  CHECK(shows(frame_of(seen, {}, 24, 100), "     512        2 "));
}

TEST_CASE("a frame shows guarantees and who waits") {
  const Frame frame = frame_of(usage(with_guarantees({kGi})), {}, 24, 80);
  CHECK(frame.lines[0] == "ration top: 2 processes on 1 GPU, by reserved");
  CHECK(shows(frame, "GUARANTEE   WAITS FAILS"));
  CHECK(shows(frame, "GUARANTEED CLAIMED"));
  CHECK(shows(frame, "4.00GiB 4.00GiB 4.00GiB         2       1"));
}

TEST_CASE("rows that do not fit are counted") {
  const Frame frame = frame_of(many(100), {}, 24, 80);
  // 22 lines between title and keys: 3 for the group, a title, 17 processes.
  CHECK(shows(frame, "and 83 more"));
  CHECK(shows(frame, "nightly 1f2e3d4c 8.00GiB"));
}

TEST_CASE("a frame fits every screen size, down to one cell") {
  Usage seen = many(30);
  seen.problems = {"one", "two", std::string(300, 'x')};
  for (std::size_t height = 1; height < 40; ++height) {
    for (const std::size_t width : std::vector<std::size_t>{1, 2, 10, 79, 80, 200}) {
      const Frame frame = frame_of(seen, {}, height, width);
      REQUIRE(frame.lines.size() == height);
      for (const std::string &line : frame.lines) {
        REQUIRE(line.size() <= width);
      }
      REQUIRE((frame.title_line == Frame::kNone || frame.title_line < height));
    }
  }
}

TEST_CASE("without processes the frame says so") {
  CHECK(frame_of(usage({}), {}, 24, 80).lines.at(1) == "no process has requested device memory under ration here");
}

TEST_CASE("a problem is shown as printable text") {
  const Frame frame = frame_of(usage_of({}, "no\x1b[2J way", kNow), {}, 24, 80);
  CHECK(frame.lines.at(1) == "! no\\x1b[2J way");
}

TEST_CASE("keys choose the order, pause and quit; other keys are ignored") {
  TopState state;
  handle_key('p', state);
  CHECK(state.sorted_by == SortKey::kPid);
  CHECK(frame_of(many(3), state, 24, 80).lines.at(2).find("1 train") == 2);
  CHECK(frame_of(many(3), state, 24, 80).lines.at(0) == "ration top: 3 processes on 1 GPU, by pid");
  for (const auto &[key, order] : {std::pair('r', SortKey::kReserved), std::pair('u', SortKey::kUsed),
                                   std::pair('a', SortKey::kAge), std::pair('g', SortKey::kGroup)}) {
    handle_key(key, state);
    CHECK(state.sorted_by == order);
  }
  handle_key('x', state);
  handle_key(-1, state);
  CHECK(state.sorted_by == SortKey::kGroup);
  CHECK_FALSE(state.paused);
  handle_key(' ', state);
  CHECK(state.paused);
  CHECK(frame_of(many(3), state, 24, 80).lines.at(0) == "ration top: 3 processes on 1 GPU, by group, paused");
  handle_key(' ', state);
  CHECK_FALSE(state.paused);
  CHECK_FALSE(state.ended);
  handle_key('q', state);
  CHECK(state.ended);
}

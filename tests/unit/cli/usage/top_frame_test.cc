#include "cli/usage/top_frame.h"

#include <algorithm>

#include "busy_usage.h"
#include "catch.h"
#include "cli/text_table.h"

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

void type(const std::string &keys, TopState &state) {
  for (const char key : keys) {
    handle_key(static_cast<unsigned char>(key), state);
  }
}

std::string styled(const Frame &frame, Style style) {
  std::string text;
  for (const Frame::Span &span : frame.spans) {
    if (span.style == style) {
      text += frame.lines.at(span.line).substr(span.begin, span.width) + "|";
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a frame shows granules and stitched blocks where a process has granules") {
  Usage seen = many(3);
  CHECK_FALSE(shows(frame_of(seen, {}, 24, 130), "GRANULES"));
  seen.processes[0].use.stitching = {512, 2, 40};
  CHECK(shows(frame_of(seen, {}, 24, 130), "PEAK PEAKUSED GRANULES STITCHED FAILS"));
  CHECK(shows(frame_of(seen, {}, 24, 130), "     512        2 "));
}

TEST_CASE("a frame shows guarantees and who waits") {
  const Frame frame = frame_of(usage(with_guarantees({kGi})), {}, 24, 80);
  CHECK(shows(frame, "GUARANTEE   WAITS"));
  CHECK(shows(frame, "GUARANTEED CLAIMED"));
  CHECK(shows(frame, "4.00GiB 4.00GiB 4.00GiB         2       1"));
}

TEST_CASE("rows that do not fit are counted, and can be scrolled to") {
  TopState state;
  Frame frame = frame_of(many(100), state, 24, 80);
  // 22 lines between title and keys: a device, 2 of the group, titles, 18 processes.
  CHECK(shows(frame, "and 83 more"));
  CHECK(shows(frame, "nightly"));
  CHECK(frame.last_first_row == 82);
  handle_key(kDownKey, state);
  frame = frame_of(many(100), state, 24, 80);
  CHECK_FALSE(shows(frame, " 100 - "));
  CHECK(shows(frame, " 99 - "));
  CHECK(shows(frame, "and 82 more"));
  state.first_row = 1000;
  frame = frame_of(many(100), state, 24, 80);
  CHECK(shows(frame, "  1 - "));
  CHECK_FALSE(shows(frame, "more"));
  state.first_row = 5;
  handle_key(kPageUpKey, state);
  CHECK(state.first_row == 0);
  handle_key(kPageDownKey, state);
  handle_key(kUpKey, state);
  CHECK(state.first_row == 9);
}

TEST_CASE("a frame fits every screen size, down to one cell, and its last line is used") {
  Usage seen = many(30);
  seen.problems = {"one", "two", std::string(300, 'x')};
  TopState asking;
  asking.shows_help = true;
  for (const bool is_unicode : {false, true}) {
    TopState state;
    state.is_unicode = is_unicode;
    for (const Usage &each : {seen, busy_usage(), usage({})}) {
      for (std::size_t height = 1; height < 40; ++height) {
        for (const std::size_t width : std::vector<std::size_t>{1, 2, 3, 10, 31, 59, 79, 80, 99, 100, 200}) {
          for (const TopState &how : {state, asking}) {
            const Frame frame = frame_of(each, how, height, width);
            REQUIRE(frame.lines.size() == height);
            for (const std::string &line : frame.lines) {
              REQUIRE(width_of(line) <= width);
            }
            for (const Frame::Span &span : frame.spans) {
              REQUIRE(span.line < height);
            }
            REQUIRE_FALSE(frame.lines.back().empty());
          }
        }
      }
    }
  }
}

TEST_CASE("no line is empty while something is not shown") {
  for (std::size_t height = 3; height < 40; ++height) {
    const Frame frame = frame_of(busy_usage(), {}, height, 80);
    const bool has_room = std::count(frame.lines.begin(), frame.lines.end(), "") > 1;
    INFO(height);
    CHECK_FALSE((has_room && shows(frame, "more")));
  }
}

TEST_CASE("without UTF-8 a frame is printable ASCII") {
  Usage seen = busy_usage();
  seen.processes[0].program = seen.processes[0].command = "\xc3\xbc\x1b[2J";
  TopState state;
  type("/\xc3", state);
  state.filter.clear();
  for (const std::string &line : frame_of(seen, state, 40, 200).lines) {
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
}

TEST_CASE("without processes the frame says so") {
  CHECK(frame_of(usage({}), {}, 24, 80).lines.at(1) == "no process has requested device memory under ration here");
}

TEST_CASE("a problem is shown as printable text") {
  const Frame frame = frame_of(usage_of({}, "no\x1b[2J way", kNow), {}, 24, 80);
  CHECK(frame.lines.at(1) == "! no\\x1b[2J way");
  CHECK(styled(frame, Style::kWarning) == "! no\\x1b[2J way|");
}

TEST_CASE("totals are of all devices, and without the size of one there is no size of all") {
  CHECK(frame_of(busy_usage(), {}, 24, 80).lines.at(0) ==
        "ration top: 12 processes on 3 GPUs, 86.1GiB used, 108GiB reserved of 152GiB");
  CHECK(frame_of(many(2), {}, 24, 80).lines.at(0) == "ration top: 2 processes on 1 GPU, 1MiB used, 3MiB reserved");
}

TEST_CASE("bars have a style for each part, and the column of the order another one") {
  ledger::GroupDevice sized{kFirstGpu, ledger::kNoLimit, kGi};
  sized.size = 2 * kGi;
  const Usage one = usage({group(GroupKind::kNone, "", {sized}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  const Frame frame = frame_of(one, {}, 5, 66);
  CHECK(frame.lines.at(1) == "GPU 1f2e3d4c [##===     ] 512MiB used, 1.00GiB reserved of 2.00GiB");
  CHECK(styled(frame, Style::kUsed) == "##|");
  CHECK(styled(frame, Style::kReserved) == "===|");
  CHECK(styled(frame, Style::kSorted) == ">RESERVED|");
  CHECK(styled(frame, Style::kKeys) == frame.lines.back() + "|");
}

TEST_CASE("keys choose the order, the second press reverses it") {
  TopState state;
  for (const auto &[key, order] :
       {std::pair('r', SortKey::kReserved), std::pair('u', SortKey::kUsed), std::pair('l', SortKey::kLimit),
        std::pair('k', SortKey::kPeak), std::pair('f', SortKey::kFailures), std::pair('a', SortKey::kAge),
        std::pair('p', SortKey::kPid), std::pair('n', SortKey::kUser), std::pair('d', SortKey::kGpu),
        std::pair('g', SortKey::kGroup), std::pair('c', SortKey::kCommand)}) {
    const bool was_sorted_by = state.sorted_by == order;
    handle_key(key, state);
    CHECK(state.sorted_by == order);
    CHECK(state.is_reversed == was_sorted_by);
    handle_key(key, state);
    CHECK(state.is_reversed != was_sorted_by);
  }
  state = {};
  handle_key('p', state);
  CHECK(frame_of(many(3), state, 24, 80).lines.at(5).find("  1 - ") == 1);
  handle_key('p', state);
  CHECK(frame_of(many(3), state, 24, 80).lines.at(5).find("  3 - ") == 1);
}

TEST_CASE("keys pause and quit; other keys are ignored") {
  TopState state;
  for (const int key : std::vector<int>{'x', -1, 0x1b5b, kEnterKey, kEraseKey, kEscapeKey}) {
    handle_key(key, state);
    CHECK(state.sorted_by == SortKey::kReserved);
    CHECK_FALSE(state.is_reversed);
  }
  CHECK_FALSE(state.paused);
  handle_key(' ', state);
  CHECK(state.paused);
  CHECK(frame_of(many(3), state, 24, 90).lines.at(0) ==
        "ration top: 3 processes on 1 GPU, paused, 3MiB used, 6MiB reserved");
  handle_key(' ', state);
  CHECK_FALSE(state.paused);
  CHECK_FALSE(state.ended);
  handle_key('q', state);
  CHECK(state.ended);
}

TEST_CASE("a filter is typed after /, kept by Enter and cleared by Esc") {
  TopState state;
  type("/serq", state);
  CHECK(state.is_typing);
  CHECK_FALSE(state.ended);
  CHECK(frame_of(busy_usage(), state, 24, 80).lines.back().find("/serq_") == 0);
  CHECK(shows(frame_of(busy_usage(), state, 24, 80), "no process has that in its names"));
  handle_key(kEraseKey, state);
  handle_key(kEnterKey, state);
  CHECK_FALSE(state.is_typing);
  const Frame frame = frame_of(busy_usage(), state, 24, 120);
  CHECK(frame.lines.at(0).find("ration top: 2 of 12 processes on 3 GPUs with \"ser\", 86.1GiB used") == 0);
  CHECK(shows(frame, "serve --port 8081"));
  CHECK_FALSE(shows(frame, "train.py"));
  handle_key('u', state);  // an order again
  CHECK(state.sorted_by == SortKey::kUsed);
  handle_key(kEscapeKey, state);
  CHECK(state.filter.empty());
  type("/a\xc3\xbc", state);
  handle_key(kEraseKey, state);
  CHECK(state.filter == "a");
  handle_key(kEscapeKey, state);
  CHECK_FALSE(state.is_typing);
  CHECK(state.filter.empty());
}

TEST_CASE("any key leaves the help, q leaves top") {
  TopState state;
  handle_key('?', state);
  CHECK(shows(frame_of(many(3), state, 24, 80), "the same key again reverses"));
  handle_key('p', state);
  CHECK_FALSE(state.shows_help);
  CHECK(state.sorted_by == SortKey::kReserved);
  type("?q", state);
  CHECK(state.ended);
}

TEST_CASE("what devices held is remembered, nothing where they had no processes") {
  UsageHistory history;
  history.add(many(1));
  history.add(usage({}));
  history.add(many(2));
  CHECK(history.of(kFirstGpu) == std::vector<std::uint64_t>{kMi, 0, 3 * kMi});
  CHECK(history.of(kSecondGpu).empty());
  for (int i = 0; i < 1000; ++i) {
    history.add(many(1));
  }
  CHECK(history.of(kFirstGpu).size() == 512);
}

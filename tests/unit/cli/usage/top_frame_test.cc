#include "cli/usage/top_frame.h"

#include <algorithm>
#include <clocale>
#include <map>

#include "busy_usage.h"
#include "catch.h"
#include "cli/base/text_table.h"

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

// So many devices, groups of one process, and processes in all.
Usage machine_with(int devices, int groups, int processes) {
  const auto uuid = [devices](int i) { return "GPU-0000000" + std::to_string(i % devices) + "-0000"; };
  std::vector<ledger::Group> all;
  std::vector<ledger::Member> alone;
  for (int i = 0; i < processes; ++i) {
    ledger::Member each =
        member(static_cast<std::uint64_t>(i + 1), i + 1, {use(uuid(i), static_cast<std::uint64_t>(99 - i) * kMi)});
    each.program = "job" + std::to_string(i);
    if (i < groups) {
      all.push_back(group(GroupKind::kNamed, "group" + std::to_string(i), {{uuid(i), kGi, kMi}}, {each}));
    } else {
      alone.push_back(each);
    }
  }
  all.push_back(group(GroupKind::kNone, "", {}, alone));
  Usage seen = usage(all);
  std::map<std::string, int> indexes;
  for (int i = 0; i < devices; ++i) {
    indexes[uuid(i)] = i;
  }
  number_devices(seen, indexes);
  return seen;
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
  CHECK_FALSE(shows(frame_of(seen, {}, 24, 130), "PIECES"));
  seen.processes[0].use.stitching = {512, 2, 40};
  CHECK(shows(frame_of(seen, {}, 24, 130), "PEAKRES PEAKUSED PIECES JOINED FAILS"));
  CHECK(shows(frame_of(seen, {}, 24, 130), "    512      2 "));
}

TEST_CASE("a frame shows guarantees and who waits") {
  CHECK(shows(frame_of(usage(with_guarantees({kGi})), {}, 24, 120), "GUARANTEE   WAITS"));
  const Frame frame = frame_of(usage(with_guarantees({kGi})), {}, 24, 80);
  Usage none_waits = usage(with_guarantees({kGi}));
  for (ProcessRow &row : none_waits.processes) {
    row.use.waiting = 0;
  }
  CHECK(shows(frame_of(none_waits, {}, 24, 80), "PID USER"));  // rather than GUARANTEE
  CHECK(shows(frame, "GUARANTEED CLAIMED"));
  CHECK(shows(frame, "4.00GiB 4.00GiB 4.00GiB       1"));
}

TEST_CASE("a frame says who holds what is waited for, also where the filter leaves that one out") {
  const std::string line = "own (pid 9) waits for 2.00GiB on GPU 1f2e3d4c: train (pid 6) is guaranteed 3.00GiB";
  TopState state;
  CHECK(frame_of(usage(with_guarantees({kGi})), state, 24, 120).lines.at(1) == line);
  type("/own", state);
  CHECK(frame_of(usage(with_guarantees({kGi})), state, 24, 120).lines.at(1) == line);
}

TEST_CASE("the titles tell which rows are shown, and the arrow keys reach the others") {
  TopState state;
  Frame frame = frame_of(many(100), state, 24, 80);
  // 22 lines between title and keys: a device, 2 of the group, titles, 18 processes.
  CHECK(shows(frame, " *1-18/100"));
  CHECK(shows(frame, "nightly"));
  keep_on_screen(frame, state);
  handle_key(kDownKey, state);
  CHECK(shows(frame_of(many(100), state, 24, 80), " *1-18/100"));  // the second of the rows is chosen
  handle_key(kPageDownKey, state);
  frame = frame_of(many(100), state, 24, 80);
  CHECK_FALSE(shows(frame, "100 -    nightly"));
  CHECK(shows(frame, " 98 -    nightly"));
  CHECK(shows(frame, " *3-20/100"));
  keep_on_screen(frame, state);
  state.cursors[0] = 1000;
  frame = frame_of(many(100), state, 24, 80);
  CHECK(shows(frame, "  1 -    nightly"));
  CHECK(shows(frame, " *83-100/100"));
  keep_on_screen(frame, state);
  CHECK(state.cursors[0] == 99);
  handle_key(kUpKey, state);
  CHECK(shows(frame_of(many(100), state, 24, 80), " *83-100/100"));
  handle_key(kPageUpKey, state);
  CHECK(shows(frame_of(many(100), state, 24, 80), " *81-98/100"));
  state.cursors[0] = 5;
  handle_key(kPageUpKey, state);
  CHECK(state.cursors[0] == 0);
  CHECK_FALSE(shows(frame_of(many(3), {}, 24, 80), "/3"));
}

TEST_CASE("a part for which there is no room shows no rows, and says of how many") {
  for (std::size_t height = 1; height < 12; ++height) {
    for (const std::size_t width : std::vector<std::size_t>{30, 80}) {
      const Frame frame = frame_of(machine_with(2, 2, 3), {}, height, width);
      CHECK_FALSE(shows(frame, "1-0/"));
    }
  }
}

TEST_CASE("Tab lets the arrow keys reach each group and each device, also on a small screen") {
  const Usage seen = machine_with(9, 7, 30);
  for (const std::size_t height : std::vector<std::size_t>{6, 10, 16, 24}) {
    for (const char *what : {"GPU 8 ", "group6", "job29"}) {
      TopState state;
      bool is_found = false;
      for (int part = 0; part < 3 && !is_found; ++part) {
        for (int row = 0; row < 30 && !is_found; ++row) {
          const Frame frame = frame_of(seen, state, height, 80);
          is_found = shows(frame, what);
          keep_on_screen(frame, state);
          handle_key(kDownKey, state);
        }
        handle_key(kNextKey, state);
      }
      INFO(height << " lines, " << what);
      CHECK(is_found);
    }
  }
}

TEST_CASE("the part that Tab has chosen has most lines, and a mark") {
  TopState state;
  const Usage seen = machine_with(9, 7, 30);
  CHECK(shows(frame_of(seen, state, 14, 80), " 1-2/7"));
  CHECK(shows(frame_of(seen, state, 14, 80), " GPUs 1-4/9"));
  handle_key(kNextKey, state);
  CHECK(shows(frame_of(seen, state, 12, 80), " *1-5/7"));
  handle_key(kNextKey, state);
  CHECK(shows(frame_of(seen, state, 12, 80), "GPUs *1-5/9"));
  handle_key(kNextKey, state);
  CHECK(state.scrolled == TopPart::kProcesses);
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
    CHECK_FALSE((has_room && (shows(frame, "/12") || shows(frame, "/3"))));
  }
}

TEST_CASE("each device, group and process has a bar, from 60 columns on") {
  for (const std::size_t width : std::vector<std::size_t>{60, 80, 100, 120, 200}) {
    const Frame frame = frame_of(busy_usage(), {}, 24, width);
    INFO(width);
    CHECK(std::count_if(frame.lines.begin(), frame.lines.end(),
                        [](const std::string &line) { return line.find(" [") != std::string::npos; }) == 3 + 3 + 12);
  }
  Usage unnumbered = busy_usage();
  number_devices(unnumbered, {});
  CHECK(shows(frame_of(unnumbered, {}, 10, 60), "24.0GiB 23.4GiB 24.0GiB [######] "));
  CHECK(frame_of(busy_usage(), {}, 6, 30).lines.at(0) == "12 processes          GPUs 1/3");
  CHECK(frame_of(busy_usage(), {}, 6, 30).lines.at(1) == "GPU 0 [##-] 64.5GiB of 80.0GiB");
}

TEST_CASE("a group has no row for a device where it holds nothing, but one at least") {
  Usage seen = usage({group(GroupKind::kNamed, "a", {{kFirstGpu, kGi, 0}, {kSecondGpu, kGi, kMi}},
                            {member(1, 10, {use(kSecondGpu, kMi)})}),
                      group(GroupKind::kNamed, "b", {{kFirstGpu, kGi, 0}, {kSecondGpu, kGi, 0}}, {})});
  const Frame frame = frame_of(seen, {}, 24, 80);
  CHECK(shows(frame, "a     99887766"));
  CHECK_FALSE(shows(frame, "a     1f2e3d4c"));
  CHECK(std::count_if(frame.lines.begin(), frame.lines.end(),
                      [](const std::string &line) { return line.find("b     ") == 0; }) == 1);
}

TEST_CASE("wide characters count as two columns, where the locale knows them") {
  REQUIRE(std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr);
  Usage seen = busy_usage();
  TopState state;
  state.is_unicode = true;
  for (ProcessRow &row : seen.processes) {
    row.command = "\u65e5\u672c\u8a9e\u306e\u30d7\u30ed\u30b0\u30e9\u30e0\u306e\u540d\u524d";
  }
  CHECK(width_of(seen.processes[0].command) == 24);
  CHECK(width_of("e\u0301") == 1);
  CHECK(truncate(std::string("\u65e5\u672c\u8a9e"), 4) == "\u65e5+");
  CHECK(truncate(std::string("\u65e5\u672c\u8a9e"), 5) == "\u65e5\u672c+");
  for (const std::size_t width : std::vector<std::size_t>{60, 61, 80, 81}) {
    for (const std::string &line : frame_of(seen, state, 24, width).lines) {
      CHECK(width_of(line) <= width);
    }
  }
  CHECK(shows(frame_of(seen, state, 24, 80), "\u672c\u8a9e\u306e\u30d7\u30ed\u30b0+"));
  std::setlocale(LC_CTYPE, "C");
  CHECK(width_of("\u65e5\u672c\u8a9e") == 3);
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

TEST_CASE("without processes the frame says so, and where it looked") {
  TopState state;
  CHECK(frame_of(usage({}), state, 24, 80).lines.at(1) == "no process has requested device memory under ration here");
  state.looked_in = "looked in /srv";
  CHECK(frame_of(usage({}), state, 24, 80).lines.at(1) ==
        "no process has requested device memory under ration here; looked in /srv");
  CHECK(frame_of(usage({}), state, 24, 60).lines.at(2) == "looked in /srv");
}

TEST_CASE("a problem is shown as printable text") {
  const Frame frame = frame_of(usage_of({}, "no\x1b[2J way", kNow), {}, 24, 80);
  CHECK(frame.lines.at(1) == "! no\\x1b[2J way");
  CHECK(styled(frame, Style::kWarning) == "! no\\x1b[2J way|");
}

TEST_CASE("totals are of all devices, and without the size of one there is no size of all") {
  CHECK(frame_of(busy_usage(), {}, 24, 80).lines.at(0) ==
        "ration top: 12 processes on 3 GPUs, 86.2GiB used, 108GiB reserved of 152GiB");
  CHECK(frame_of(many(2), {}, 24, 80).lines.at(0) == "ration top: 2 processes on 1 GPU, 1.50MiB used, 3MiB reserved");
}

TEST_CASE("bars have a style for each part, and the column of the order another one") {
  ledger::GroupDevice sized{kFirstGpu, ledger::kNoLimit, kGi};
  sized.size = 2 * kGi;
  const Usage one = usage({group(GroupKind::kNone, "", {sized}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  const Frame frame = frame_of(one, {}, 5, 70);
  CHECK(frame.lines.at(1) == "GPU 1f2e3d4c [####===       ] 512MiB used, 1.00GiB reserved of 2.00GiB");
  CHECK(styled(frame, Style::kUsed) == "####|##|");
  CHECK(styled(frame, Style::kReserved) == "===|=|");
  CHECK(styled(frame, Style::kSorted) == ">RESERVED|");
  CHECK(styled(frame, Style::kKeys) == frame.lines.back() + "|");
}

TEST_CASE("keys choose the order, the second press reverses it") {
  TopState state;
  for (const auto &[key, order] :
       {std::pair('r', SortKey::kReserved), std::pair('u', SortKey::kUsed), std::pair('l', SortKey::kLimit),
        std::pair('k', SortKey::kPeak), std::pair('K', SortKey::kPeakUsed), std::pair('f', SortKey::kFailures),
        std::pair('a', SortKey::kAge), std::pair('p', SortKey::kPid), std::pair('n', SortKey::kUser),
        std::pair('d', SortKey::kGpu), std::pair('g', SortKey::kGroup), std::pair('c', SortKey::kCommand)}) {
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

TEST_CASE("the last line names as many orders as fit") {
  CHECK(frame_of(many(3), {}, 24, 60).lines.back() == "q quit  ? help  / filter  L limit  x signal  space pauses");
  CHECK(frame_of(many(3), {}, 24, 80).lines.back() ==
        "q quit  ? help  / filter  L limit  x signal  space pauses  sort by: r RESERVED");
  CHECK(shows(frame_of(many(3), {}, 24, 200), "f FAILS  a AGE  p PID  n USER  d GPU  g GROUP  c COMMAND"));
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
  CHECK(frame.lines.at(0) ==
        "ration top: 2 of 12 processes with \"ser\", 16.0GiB of 86.2GiB used, 24.0GiB of 108GiB reserved");
  CHECK(frame_of(busy_usage(), state, 24, 70).lines.at(0) ==
        "2 of 12 processes with \"ser\", 16.0GiB used, 24.0GiB reserved");
  CHECK(shows(frame, "serve --port 8081"));
  CHECK_FALSE(shows(frame, "train.py"));
  CHECK(shows(frame, "lab   0   "));  // the group that holds them, there
  CHECK_FALSE(shows(frame, "lab   1   "));
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

TEST_CASE("Ctrl-U empties what is typed for a filter") {
  TopState state;
  type("/ser", state);
  handle_key(kEmptyKey, state);
  CHECK(state.is_typing);
  CHECK(state.filter.empty());
  handle_key(kEnterKey, state);
  type("r", state);
  handle_key(kEmptyKey, state);
  CHECK(state.filter.empty());
}

TEST_CASE("a short screen scrolls the help") {
  TopState state;
  handle_key('?', state);
  CHECK(frame_of(many(3), state, 10, 60).lines.back() == "q quit  up, down: lines 1-8/22  other keys: back");
  CHECK_FALSE(shows(frame_of(many(3), state, 10, 60), "refused allocations"));
  for (int i = 0; i < 3; ++i) {
    handle_key(kPageDownKey, state);
    CHECK(state.shows_help);
    keep_on_screen(frame_of(many(3), state, 10, 60), state);
  }
  CHECK(shows(frame_of(many(3), state, 10, 60), "refused allocations"));
  type("x?", state);
  CHECK(shows(frame_of(many(3), state, 10, 60), "Keys"));
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

TEST_CASE("a frame shows what others hold and what is free, in the device's line and in a row") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, 20 * kGi)}));
  DeviceFigures figures = figures_of(kFirstGpu);
  figures.memory = {80 * kGi, 41 * kGi, 39 * kGi};
  figures.holders = {{10, 20 * kGi}};
  add_figures(seen, {figures});
  const Frame wide = frame_of(seen, {}, 10, 120);
  CHECK(wide.lines.at(1) ==
        "GPU 0 NVIDIA H200 [##==-xxxx         ] 10.0GiB used, 20.0GiB reserved, 19.0GiB others, 41.0GiB free "
        "of 80.0GiB, 37%, 54C");
  const Frame narrow = frame_of(seen, {}, 10, 80);
  CHECK(narrow.lines.at(1) == "GPU 0 [##=-xxx       ] 20.0GiB reserved, 19.0GiB others, 41.0GiB free of 80.0GiB");
  CHECK(narrow.lines.at(4).find("others") != std::string::npos);
  CHECK(shows(narrow, "1 process on 1 GPU"));
}

namespace {

// The state after the frame was shown and these keys were pressed.
TopState after(const Usage &seen, const std::string &keys, TopState state = {}) {
  keep_on_screen(frame_of(seen, state, 24, 120), state);
  type(keys, state);
  return state;
}

}  // namespace

TEST_CASE("the arrow keys choose a row, which is marked") {
  const Usage seen = many(3);
  TopState state = after(seen, "");
  CHECK(state.chosen.word == "3");
  handle_key(kDownKey, state);
  const Frame frame = frame_of(seen, state, 24, 120);
  CHECK(styled(frame, Style::kCursor).find("  2 -    nightly") == 0);
  keep_on_screen(frame, state);
  CHECK(state.chosen.word == "2");
  handle_key(kNextKey, state);
  CHECK(after(seen, "", state).chosen.word == "group:nightly");
}

TEST_CASE("a limit is set only after its question was answered with y") {
  const Usage seen = many(3);
  TopState state = after(seen, "L4g");
  CHECK(frame_of(seen, state, 24, 120).lines.back() == "limit of process 3 (train): 4g_  Enter goes on  Esc leaves");
  handle_key(kEnterKey, state);
  CHECK_FALSE(state.order.has_value());
  CHECK(frame_of(seen, state, 24, 120).lines.back() == "y/n: set the limit to 4g for process 3 (train)");
  TopState left = state;
  handle_key('n', left);
  CHECK_FALSE(left.order.has_value());
  CHECK_FALSE(left.question.has_value());
  CHECK(frame_of(seen, left, 24, 120).lines.back() == "nothing was done");
  handle_key('y', state);
  REQUIRE(state.order.has_value());
  CHECK(state.order->target.word == "3");
  CHECK(state.order->text == "4g");
  CHECK_FALSE(state.order->is_signal);
}

TEST_CASE("a question keeps its process, whatever row the cursor is on by then") {
  TopState state = after(many(3), "x");
  keep_on_screen(frame_of(many(5), state, 24, 120), state);
  CHECK(state.chosen.word == "5");
  handle_key(kEnterKey, state);
  handle_key('y', state);
  REQUIRE(state.order.has_value());
  CHECK(state.order->target.word == "3");
  CHECK(state.order->text == "TERM");
}

TEST_CASE("no signal goes to a group, to what others hold, or by a name that is none") {
  Usage seen = many(1);
  TopState state = after(seen, "\t");
  CHECK(after(seen, "x", state).message == "a signal goes to a process");
  CHECK_FALSE(after(seen, "x", state).question.has_value());
  CHECK(after(seen, "L", state).question.has_value());
  add_figures(seen, {figures_of(kFirstGpu)});  // the first of the rows, by its size
  CHECK(after(seen, "x").message == "a signal goes to a process");
  CHECK(after(seen, "L").message == "choose a process or a group");
  state = after(many(1), "xX");
  handle_key(kEnterKey, state);
  CHECK(state.message == "there is no signal TERMX");
  CHECK_FALSE(state.question.has_value());
}

TEST_CASE("signals have names, with and without SIG, and numbers") {
  CHECK(signal_called("TERM") == 15);
  CHECK(signal_called("SIGKILL") == 9);
  CHECK(signal_called("10") == 10);
  for (const char *none : {"", "0", "-1", "65", "9x", "term", "SIG"}) {
    CHECK(signal_called(none) == 0);
  }
}

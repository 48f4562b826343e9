#include "cli/usage/usage_tables.h"

#include <algorithm>
#include <sstream>

#include "catch.h"
#include "cli/base/text_table.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;
using Lines = std::vector<std::string>;

namespace {

std::size_t widest(const Lines &lines) {
  std::size_t width = 0;
  for (const std::string &line : lines) {
    width = std::max(width, width_of(line));
  }
  return width;
}

Lines processes(const Usage &usage, std::size_t width) {
  return process_table(usage, {width}).lines;
}

}  // namespace

TEST_CASE("sizes are short and rounded to the nearest, and only nothing is 0") {
  CHECK(short_bytes(0) == "0B");
  CHECK(short_bytes(1) == "1B");
  CHECK(short_bytes(1023) == "1023B");
  CHECK(short_bytes(2048) == "2KiB");
  CHECK(short_bytes(2047) == "2.00KiB");
  CHECK(short_bytes(kMi - 1) == "1.00MiB");
  CHECK(short_bytes(kMi + kMi / 2 - 1) == "1.50MiB");
  CHECK(short_bytes(kGi - kMi) == "1023MiB");
  CHECK(short_bytes(kGi - 1) == "1.00GiB");
  CHECK(short_bytes(6871947673) == "6.40GiB");
  CHECK(short_bytes(10 * kGi - 1) == "10.0GiB");
  CHECK(short_bytes(24 * kGi - 1) == "24.0GiB");
  CHECK(short_bytes(100 * kGi - 1) == "100GiB");
  CHECK(short_bytes(192 * kGi) == "192GiB");
  CHECK(short_bytes(ledger::kNoLimit - 1) == "16.0EiB");
  CHECK(short_bytes(ledger::kNoLimit) == "-");
}

TEST_CASE("what is reserved and what is free add up to the limit") {
  CHECK(short_bytes(2700 * kMi) == "2.64GiB");
  CHECK(short_bytes(6 * kGi - 2700 * kMi) == "3.36GiB");
}

TEST_CASE("ages are in their largest whole unit, and a start in the future counts as now") {
  CHECK(short_age(kNow - 59 * kSecond, kNow) == "59s");
  CHECK(short_age(kNow - 3599 * kSecond, kNow) == "59m");
  CHECK(short_age(kNow - 86399 * kSecond, kNow) == "23h");
  CHECK(short_age(kNow - 3 * 86400 * kSecond, kNow) == "3d");
  CHECK(short_age(kNow + kSecond, kNow) == "0s");
}

TEST_CASE("both tables at unlimited width") {
  ledger::Member train = member(1, 14969, {use(kFirstGpu, 3 * kGi / 2)});
  train.devices[0].limit = 8 * kGi;
  train.devices[0].failures = {2, 1, 0, 0, 0};
  const Usage seen = usage({group(GroupKind::kNamed, "nightly", {{kFirstGpu, 12 * kGi, 3 * kGi / 2}}, {train}),
                            group(GroupKind::kNone, "", {}, {member(2, 7, {use(kSecondGpu, kMi)})})});
  CHECK(all_tables(seen, kUnlimitedWidth) ==
        Lines{"  PID USER GROUP   GPU      RESERVED   USED   LIMIT PEAKRES PEAKUSED FAILS AGE COMMAND",
              "14969 -    nightly 1f2e3d4c  1.50GiB 768MiB 8.00GiB 1.50GiB   768MiB     3  1m train",
              "    7 -    -       99887766     1MiB 512KiB       -    1MiB   512KiB     0  1m train", "",
              "GROUP   GPU        LIMIT RESERVED    FREE PROCESSES",
              "nightly 1f2e3d4c 12.0GiB  1.50GiB 10.5GiB         1"});
}

TEST_CASE("pieces and joined blocks have columns where a process has pieces") {
  ledger::Member train = member(1, 14969, {use(kFirstGpu, 3 * kGi / 2)});
  train.devices[0].stitching = {512, 3, 40};
  const Usage seen = usage({group(GroupKind::kNone, "", {}, {train, member(2, 7, {use(kSecondGpu, kMi)})})});
  CHECK(processes(seen, kUnlimitedWidth) ==
        Lines{"  PID USER GPU      RESERVED   USED LIMIT PEAKRES PEAKUSED PIECES JOINED FAILS AGE COMMAND",
              "14969 -    1f2e3d4c  1.50GiB 768MiB     - 1.50GiB   768MiB    512      3     0  1m train",
              "    7 -    99887766     1MiB 512KiB     -    1MiB   512KiB      0      0     0  1m train"});
}

TEST_CASE("joined blocks have no column where there are none") {
  ledger::Member train = member(1, 14969, {use(kFirstGpu, 3 * kGi / 2)});
  train.devices[0].stitching = {512, 0, 0};
  const std::string titles = processes(usage({group(GroupKind::kNone, "", {}, {train})}), kUnlimitedWidth).at(0);
  CHECK(titles.find("PIECES FAILS") != std::string::npos);
}

TEST_CASE("guarantees, and what is waited for, have columns where there are some") {
  const Usage seen = usage(with_guarantees({kGi}));
  CHECK(
      all_tables(seen, kUnlimitedWidth) ==
      Lines{
          "PID USER GROUP           GPU      RESERVED   USED LIMIT PEAKRES PEAKUSED GUARANTEE   WAITS FAILS AGE "
          "COMMAND",
          "  6 -    a,tree:00000000 1f2e3d4c  1.00GiB 512MiB     - 1.00GiB   512MiB   3.00GiB       -     0  1m train",
          "  9 -    a               1f2e3d4c   512MiB 256MiB     -  512MiB   256MiB   1.00GiB 2.00GiB     0  1m own",
          "", "GROUP         GPU        LIMIT RESERVED GUARANTEED CLAIMED    FREE PROCESSES WAITING",
          "a             1f2e3d4c 8.00GiB  1.50GiB    4.00GiB 4.00GiB 4.00GiB         2       1",
          "tree:00000000 1f2e3d4c       -  1.00GiB          - 1.00GiB       -         1       0", "",
          "own (pid 9) waits for 2.00GiB on GPU 1f2e3d4c: train (pid 6) is guaranteed 3.00GiB"});
}

TEST_CASE("where not all columns fit, those of the pool go first, then ages, peaks, failures, guarantees, names") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  groups[0].members.back().devices[0].stitching = {512, 3, 40};
  const Usage seen = usage(groups);
  std::string before;
  std::vector<std::string> gone;
  for (std::size_t width = 200; width > 46; --width) {
    std::string titles = process_table(seen, {.width = width, .has_bars = true}).lines.at(0);
    titles.erase(titles.find_last_not_of('+') + 1);
    std::istringstream words(before);
    for (std::string word; words >> word;) {
      if ((" " + titles + " ").find(" " + word + " ") == std::string::npos) {
        gone.push_back(word);
      }
    }
    before = titles;
  }
  CHECK(gone == Lines{"PIECES", "JOINED", "AGE", "PEAKRES", "PEAKUSED", "FAILS", "GUARANTEE", "USER", "GROUP", "WAITS",
                      "MEMORY"});
}

TEST_CASE("the column that rows are sorted by is marked, and stays") {
  const Usage seen = usage(with_guarantees({kGi}));
  const auto titles = [&seen](SortKey key, bool is_reversed, bool is_unicode) {
    return process_table(seen, {55, false, is_unicode, key, is_reversed}).lines.at(0);
  };
  CHECK(titles(SortKey::kReserved, false, false).find(" >RESERVED ") != std::string::npos);
  CHECK(titles(SortKey::kReserved, true, false).find(" <RESERVED ") != std::string::npos);
  CHECK(titles(SortKey::kReserved, false, true).find(" \u25bcRESERVED ") != std::string::npos);
  CHECK(titles(SortKey::kReserved, true, true).find(" \u25b2RESERVED ") != std::string::npos);
  CHECK(titles(SortKey::kReserved, false, false).find("PEAK") == std::string::npos);
  CHECK(titles(SortKey::kPeak, false, false).find(">PEAKRES") != std::string::npos);
  CHECK(titles(SortKey::kPeakUsed, false, false).find(">PEAKUSED") != std::string::npos);
  for (const SortKey key : {SortKey::kPid, SortKey::kUser, SortKey::kGpu, SortKey::kGroup, SortKey::kCommand}) {
    CHECK(titles(key, false, false).find('<') != std::string::npos);  // the smallest first
    CHECK(titles(key, true, true).find("\u25bc") != std::string::npos);
  }
}

TEST_CASE("a device has its index where the machine has one, and no two rows of a table name it in two ways") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi), use(kSecondGpu, 2 * kGi)}));
  number_devices(seen, {{kSecondGpu, 1}});
  CHECK(processes(seen, kUnlimitedWidth) ==
        Lines{"PID USER GPU      RESERVED    USED LIMIT PEAKRES PEAKUSED FAILS AGE COMMAND",
              " 10 -    1         2.00GiB 1.00GiB     - 2.00GiB  1.00GiB     0  1m train",
              " 10 -    1f2e3d4c  1.00GiB  512MiB     - 1.00GiB   512MiB     0  1m train"});
}

TEST_CASE("groups have users where the folders of all users were read") {
  Usage seen = usage({group(GroupKind::kNamed, "a", {{kFirstGpu, kGi, kGi}}, {})});
  CHECK(group_table(seen, {80}).lines.at(0).find("USER") == std::string::npos);
  seen.groups.at(0).user = "ada";
  CHECK(group_table(seen, {80}).lines.at(1).find("ada  a ") == 0);
}

TEST_CASE("at 80 columns names are truncated, never figures") {
  ledger::Member long_name = member(1, 4194303, {use(kFirstGpu, 192 * kGi - 1)});
  long_name.program = std::string(60, 'x');
  long_name.devices[0].limit = 191 * kGi;
  long_name.devices[0].failures = {4000000, 0, 0, 0, 0};
  const Usage seen = usage({group(GroupKind::kNamed, std::string(64, 'g'), {{kFirstGpu, kGi, kGi}}, {long_name})});
  CHECK(widest(all_tables(seen, 80)) <= 80);
  const std::string row = processes(seen, 80).at(1);
  CHECK(row.find("4194303 ") == 0);
  CHECK(row.find("x+") == row.size() - 2);
  CHECK(row.find("g+ ") != std::string::npos);
  CHECK(row.find("1f2e3d4c") != std::string::npos);
  CHECK(row.find("192GiB 96.0GiB 191GiB") != std::string::npos);
}

TEST_CASE("a table fits any width") {
  const Usage seen =
      usage({group(GroupKind::kNamed, "a", {{kFirstGpu, kGi, kGi}}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  for (std::size_t width = 0; width < 100; ++width) {
    CHECK(widest(all_tables(seen, width)) <= width);
  }
}

TEST_CASE("a program's name sends nothing to a terminal") {
  ledger::Member hostile = member(1, 10, {use(kFirstGpu, kGi)});
  hostile.program = "a\x1b[2J\nb\x9b\xc3\xa9";
  for (const std::string &line : processes(one_process(hostile), kUnlimitedWidth)) {
    CHECK(std::none_of(line.begin(), line.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }));
  }
  CHECK(processes(one_process(hostile), kUnlimitedWidth).at(1).find("a\\x1b[2J\\x0ab\\x9b\xc3\xa9") !=
        std::string::npos);
}

TEST_CASE("a program that was started with an empty name has its own") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi)}));
  seen.processes.front().command = " 5 100";
  CHECK(processes(seen, kUnlimitedWidth).at(1).find("1m train 5 100") != std::string::npos);
}

TEST_CASE("a program is shown without its folder") {
  ledger::Member process = member(1, 10, {use(kFirstGpu, kGi)});
  process.program = "/opt/nightly/bin/train";
  CHECK(processes(one_process(process), kUnlimitedWidth).at(1).find("1m train") != std::string::npos);
}

TEST_CASE("GPUs with a common UUID prefix get longer names") {
  const Usage seen =
      one_process(member(1, 10, {use("GPU-12345678-aaaa-0000", kGi), use("GPU-12345678-aabb-0000", 2 * kGi)}));
  CHECK(processes(seen, kUnlimitedWidth).at(1).find(" 12345678-aab ") != std::string::npos);
  CHECK(processes(seen, kUnlimitedWidth).at(2).find(" 12345678-aaa ") != std::string::npos);
}

TEST_CASE("a process of a container has the ID that it has here") {
  Usage seen = one_process(member(1, 1, {use(kFirstGpu, kGi)}));
  CHECK(processes(seen, kUnlimitedWidth).at(0).find("CONTAINER") == std::string::npos);
  seen.processes.front().here = {4711, "web-7f\x1b"};
  CHECK(processes(seen, kUnlimitedWidth).at(0).find("CONTAINER") != std::string::npos);
  CHECK(processes(seen, kUnlimitedWidth).at(1).find("4711 -    web-7f\\x1b") != std::string::npos);
}

TEST_CASE("a container's name is found in a line of its cgroup") {
  const std::string id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  for (const std::string &line : {"0::/machine.slice/libpod-" + id + ".scope/container", "12:devices:/docker/" + id,
                                  "0::/kubepods.slice/cri-containerd-" + id + ".scope", "0::/crio-" + id + ".scope"}) {
    CHECK(container_in_cgroup(line) == "0123456789ab");
  }
  for (const std::string &line : {std::string("0::/user.slice"), "0::/" + id + "0", "0::/" + id.substr(1)}) {
    CHECK(container_in_cgroup(line).empty());
  }
}

TEST_CASE("where NVML answers, what others hold has a row, and each device its figures") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi)}));
  add_figures(seen, {figures_of(kFirstGpu)});
  const Lines lines = all_tables(seen, kUnlimitedWidth);
  REQUIRE(lines.size() == 6);
  CHECK(lines[2] == "  - -    0    4.00GiB      -     -       -        -     -   - others");
  CHECK(lines[3].empty());
  CHECK(lines[4] == "GPU NAME        UUID            SIZE RESERVED OVERHEAD  OTHERS    FREE UTIL TEMP");
  CHECK(lines[5] == "0   NVIDIA H200 GPU-1f2e3d4c 80.0GiB  1.00GiB       0B 4.00GiB 75.0GiB  37%  54C");
}

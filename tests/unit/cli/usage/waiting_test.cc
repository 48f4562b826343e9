#include "cli/usage/waiting.h"

#include <algorithm>

#include "catch.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;
using Lines = std::vector<std::string>;

namespace {

ledger::Member run_that_waits(std::uint64_t bytes) {
  ledger::DeviceUse wanted = use(kFirstGpu, 0);
  wanted.waiting = bytes;
  ledger::Member run = member(50, 50, {wanted});
  run.program = "ration run ./late";
  run.tree = 0xb1;
  run.ticket = 1;
  return run;
}

}  // namespace

TEST_CASE("where a group leaves too little, its members are named, and nobody else") {
  const Usage seen = usage(with_guarantees({kGi}));  // 4 of 8 GiB are free, and "own" waits for 2
  CHECK(waiting_lines(seen).at(0).find("own (pid 9) waits for 2.00GiB on GPU 1f2e3d4c") == 0);
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  groups[0].devices[0].limit = 5 * kGi;
  groups.push_back(group(GroupKind::kNone, "", {}, {member(60, 60, {use(kFirstGpu, 9 * kGi)})}));
  CHECK(waiting_lines(usage(groups)) ==
        Lines{"own (pid 9) waits for 2.00GiB of group a on GPU 1f2e3d4c: train (pid 6) is guaranteed 3.00GiB"});
}

TEST_CASE("a run's guarantee is told once for all of its processes") {
  std::vector<ledger::Group> groups = with_guarantees({kGi, kGi / 2});
  groups[0].devices[0].limit = 5 * kGi;
  CHECK(waiting_lines(usage(groups)) ==
        Lines{"own (pid 9) waits for 2.00GiB of group a on GPU 1f2e3d4c: train (pid 6) and 1 more of its run together "
              "are guaranteed 3.00GiB"});
}

TEST_CASE("where a device has too little, its processes are named, the largest first, and others") {
  Usage seen = usage({group(GroupKind::kQueue, "", {{kFirstGpu, 80 * kGi, 0}}, {run_that_waits(8 * kGi)}),
                      group(GroupKind::kNone, "", {},
                            {member(1, 10, {use(kFirstGpu, kGi)}), member(2, 11, {use(kFirstGpu, 2 * kGi)}),
                             member(3, 12, {use(kSecondGpu, 9 * kGi)})})});
  add_figures(seen, {figures_of(kFirstGpu)});
  CHECK(waiting_lines(seen) ==
        Lines{"ration run late (pid 50) waits for 8.00GiB on GPU 0: train (pid 11) holds 2.00GiB, "
              "train (pid 10) holds 1.00GiB, others hold 2.00GiB"});
}

TEST_CASE("many holders are counted") {
  std::vector<ledger::Member> members;
  for (int i = 1; i <= 5; ++i) {
    members.push_back(member(static_cast<std::uint64_t>(i), i, {use(kFirstGpu, kGi)}));
  }
  const Usage seen = usage({group(GroupKind::kQueue, "", {{kFirstGpu, 80 * kGi, 0}}, {run_that_waits(8 * kGi)}),
                            group(GroupKind::kNone, "", {}, members)});
  const std::string line = waiting_lines(seen).at(0);
  CHECK(line.find("train (pid 3) holds 1.00GiB and 2 more") != std::string::npos);
  CHECK(line.find("pid 4") == std::string::npos);
}

TEST_CASE("behind runs that came before, these are named, the first first, whoever holds memory") {
  std::vector<ledger::Member> runs;
  for (int i = 1; i <= 3; ++i) {
    ledger::Member run = run_that_waits(static_cast<std::uint64_t>(i) * kGi);
    run.identity = static_cast<std::uint64_t>(50 + i);
    run.pid = 50 + i;
    run.ticket = static_cast<std::uint64_t>(i);
    runs.push_back(run);
  }
  const Usage seen = usage({group(GroupKind::kQueue, "", {{kFirstGpu, 80 * kGi, 0}}, {runs[2], runs[0], runs[1]}),
                            group(GroupKind::kNone, "", {}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  const Lines lines = waiting_lines(seen);
  const auto says = [&lines](const std::string &text) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string &line) { return line.find(text) == 0; });
  };
  REQUIRE(lines.size() == 3);
  CHECK(says("ration run late (pid 51) waits for 1.00GiB on GPU 1f2e3d4c: train (pid 10) holds 1.00GiB"));
  CHECK(says(
      "ration run late (pid 53) waits for 3.00GiB on GPU 1f2e3d4c: ration run late (pid 51) comes first, and waits "
      "for 1.00GiB, ration run late (pid 52) comes first, and waits for 2.00GiB"));
}

TEST_CASE("nobody waits, and nothing is said") {
  CHECK(waiting_lines(one_process(member(1, 10, {use(kFirstGpu, kGi)}))).empty());
}

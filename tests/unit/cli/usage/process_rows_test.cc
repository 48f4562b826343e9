#include "cli/usage/process_rows.h"

#include <algorithm>
#include <stdexcept>

#include "catch.h"
#include "cli/usage/top_title.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;

namespace {

const ProcessRow &row_of(const Usage &seen, int pid) {
  const auto found = std::find_if(seen.processes.begin(), seen.processes.end(),
                                  [pid](const ProcessRow &row) { return row.pid == pid; });
  if (found == seen.processes.end()) {
    throw std::runtime_error("no row of " + std::to_string(pid));
  }
  return *found;
}

std::vector<int> pids_of(const Usage &seen) {
  std::vector<int> pids;
  for (const ProcessRow &row : seen.processes) {
    pids.push_back(row.pid);
  }
  return pids;
}

}  // namespace

TEST_CASE("a process has a row for each device that it has reserved memory on") {
  const Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi), use(kSecondGpu, 2 * kGi)}));
  REQUIRE(seen.processes.size() == 2);
  CHECK(seen.processes[0].use.uuid == kSecondGpu);  // the largest reservation comes first
  CHECK(seen.processes[1].use.uuid == kFirstGpu);
  CHECK(seen.processes[0].pid == 10);
  CHECK(seen.processes[0].program == "train");
  CHECK(seen.processes[0].group_label == "-");
}

TEST_CASE("a process in several groups has one row with all group labels") {
  const Usage seen = usage(
      {group(GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, kGi}}, {member(1, 10, {use(kFirstGpu, kGi)})}),
       group(GroupKind::kTree, "0123456789abcdef", {{kFirstGpu, 4 * kGi, kGi}}, {member(1, 10, {use(kFirstGpu, kGi)})}),
       group(GroupKind::kContainer, "4026531836-89abcdef", {}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  REQUIRE(seen.processes.size() == 1);
  CHECK(seen.processes[0].group_label == "a,tree:01234567,container:4026531836-89abcdef");
  REQUIRE(seen.processes[0].groups.size() == 3);
  CHECK(seen.processes[0].groups[0].limit == 8 * kGi);
  CHECK(seen.processes[0].groups[1].limit == 4 * kGi);
  CHECK(seen.processes[0].groups[1].name == "0123456789abcdef");
}

TEST_CASE("processes of two containers with the same pid keep separate rows") {
  const Usage seen = usage({group(GroupKind::kNamed, "a", {},
                                  {member(1, 10, {use(kFirstGpu, kGi)}), member(2, 10, {use(kFirstGpu, kGi)})})});
  CHECK(seen.processes.size() == 2);
}

TEST_CASE("two groups' figures of one process are merged: the newest published, the larger counter") {
  ledger::DeviceUse earlier = use(kFirstGpu, 2 * kGi);
  ledger::DeviceUse later = use(kFirstGpu, kGi);
  earlier.used = 700;
  earlier.peak = 3 * kGi;
  earlier.peak_used = 900;
  earlier.limit = 8 * kGi;
  earlier.guarantee = 3 * kGi;
  earlier.waiting = kMi;
  earlier.failures = {1, 0, 0, 0, 0};
  earlier.stitching = {700, 7, 30};
  later.used = 300;
  later.peak_used = 800;
  later.published_unix_ns = earlier.published_unix_ns + 1;
  later.allocations = 5;
  later.failures = {1, 2, 0, 0, 0};
  later.stitching = {300, 3, 31};
  for (const bool swapped : {false, true}) {
    const Usage seen = usage({group(GroupKind::kNamed, "a", {}, {member(1, 10, {swapped ? later : earlier})}),
                              group(GroupKind::kNamed, "b", {}, {member(1, 10, {swapped ? earlier : later})})});
    REQUIRE(seen.processes.size() == 1);
    const ledger::DeviceUse &merged = seen.processes[0].use;
    CHECK(merged.used == 300);
    CHECK(merged.published_unix_ns == later.published_unix_ns);
    CHECK(merged.reserved == 2 * kGi);
    CHECK(merged.peak == 3 * kGi);
    CHECK(merged.peak_used == 900);
    CHECK(merged.limit == 8 * kGi);
    CHECK(merged.guarantee == 3 * kGi);
    CHECK(merged.waiting == kMi);
    CHECK(merged.allocations == 5);
    CHECK(seen.processes[0].refusals() == 3);
    CHECK(merged.stitching.granules == 300);
    CHECK(merged.stitching.blocks == 3);
    CHECK(merged.stitching.total == 31);
  }
}

TEST_CASE("a group's row counts the processes that use the device, and the free bytes") {
  const Usage seen = usage(
      {group(GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, 3 * kGi}, {kSecondGpu, ledger::kNoLimit, kGi}},
             {member(1, 10, {use(kFirstGpu, kGi)}), member(2, 11, {use(kFirstGpu, 2 * kGi), use(kSecondGpu, kGi)})})});
  REQUIRE(seen.groups.size() == 2);
  CHECK(seen.groups[0].processes == 2);
  CHECK(seen.groups[0].free() == 5 * kGi);
  CHECK(seen.groups[1].processes == 1);
  CHECK(seen.groups[1].free() == ledger::kNoLimit);
}

TEST_CASE("a guarantee is its process's, and what it holds or is guaranteed is its part of the group") {
  const Usage seen = usage(with_guarantees({kGi, kGi}));
  const ProcessRow &own = row_of(seen, 9);
  CHECK(own.use.guarantee == kGi);
  CHECK(own.use.waiting == 2 * kGi);
  CHECK(own.groups.at(0).claimed == kGi);
  ledger::DeviceUse beyond = use(kFirstGpu, 2 * kGi);
  beyond.guarantee = kGi;
  CHECK(usage({group(GroupKind::kNamed, "a", {}, {member(1, 10, {beyond})})}).processes.at(0).groups.at(0).claimed ==
        2 * kGi);
}

TEST_CASE("processes that their tree's guarantee covers have it, and its holder has no row") {
  const Usage seen = usage(with_guarantees({kGi, kGi / 4}));
  REQUIRE(pids_of(seen) == std::vector<int>{6, 9, 7});
  for (const int pid : {6, 7}) {
    CHECK(row_of(seen, pid).use.guarantee == 3 * kGi);
    for (const GroupOfRow &group : row_of(seen, pid).groups) {
      const std::uint64_t reserved = row_of(seen, pid).use.reserved;
      CHECK(group.claimed == (group.kind == GroupKind::kNamed ? 3 * kGi : reserved));
    }
  }
  REQUIRE(seen.groups.size() == 2);
  CHECK(seen.groups[0].processes == 3);
  CHECK(seen.groups[0].claimed == 4 * kGi);
  CHECK(seen.groups[0].guaranteed == 4 * kGi);
  CHECK(seen.groups[0].waiting == 1);
  CHECK(seen.groups[0].free() == 4 * kGi);
  CHECK(seen.groups[1].guaranteed == 0);
}

TEST_CASE("the holder of a tree's guarantee has a row until a process of the tree has one on that device") {
  const Usage before = usage(with_guarantees({}));
  CHECK(pids_of(before) == std::vector<int>{9, 5});
  CHECK(row_of(before, 5).use.guarantee == 3 * kGi);
  CHECK(before.groups.at(0).processes == 2);
  std::vector<ledger::Group> elsewhere = with_guarantees({kGi});
  for (ledger::Group &each : elsewhere) {
    each.members.back().devices[0].uuid = kSecondGpu;
  }
  CHECK(pids_of(usage(elsewhere)) == std::vector<int>{6, 9, 5});
  CHECK(row_of(usage(elsewhere), 6).use.guarantee == 0);
}

TEST_CASE("a device on which the holder of a tree's guarantee is guaranteed nothing has no row of it, and no count") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  for (ledger::Member &each : groups[0].members) {
    if (each.tree != 0) {
      each.devices.push_back(use(kSecondGpu, 0));
      each.devices.back().guarantee = 0;
    }
  }
  groups[0].devices.push_back({kSecondGpu, 8 * kGi, 0});
  const Usage seen = usage(groups);
  for (const ProcessRow &row : seen.processes) {
    CHECK(row.use.uuid == kFirstGpu);
  }
  CHECK(seen.groups.at(1).uuid == kSecondGpu);
  CHECK(seen.groups.at(1).processes == 0);
}

TEST_CASE("the holder of a guarantee is no process beside one of its tree, where it still has a row") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  for (ledger::Member &each : groups[0].members) {
    if (each.tree != 0) {
      each.devices.push_back(use(kSecondGpu, 0));
      each.devices.back().guarantee = kGi;
    }
  }
  const Usage seen = usage(groups);
  const auto stands_in = [](const ProcessRow &row) { return row.is_stand_in; };
  CHECK(std::count_if(seen.processes.begin(), seen.processes.end(), stands_in) == 1);
  CHECK(totals_of_rows(seen).processes == seen.processes.size() - 1);
}

TEST_CASE("in a tree within a tree the inner guarantee covers, and the outer holder has a row") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  ledger::Member inner = groups[0].members[0];
  inner.identity = 4;
  inner.pid = 4;
  inner.tree = 0xa8;
  inner.start_unix_ns += kSecond;
  inner.devices[0].guarantee = 2 * kGi;
  groups.push_back(group(GroupKind::kTree, "00000000000000a8", {}, groups[1].members));
  for (const bool is_first : {false, true}) {
    std::vector<ledger::Group> seen = groups;
    std::vector<ledger::Member> &members = seen[0].members;
    members.insert(is_first ? members.begin() : members.end(), inner);
    CHECK(pids_of(usage(seen)) == std::vector<int>{6, 9, 5});
    CHECK(row_of(usage(seen), 6).use.guarantee == 2 * kGi);
  }
}

TEST_CASE("a member that waits to start and has no device yet waits for each") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  ledger::Member next = member(3, 3, {});
  next.ticket = 1;
  groups[0].members.push_back(next);
  CHECK(usage(groups).groups.at(0).waiting == 2);
  CHECK(usage({group(GroupKind::kNamed, "a", {}, {next})}).groups.at(0).waiting == 1);
}

TEST_CASE("a group above a lowered limit has nothing free") {
  const Usage seen = usage({group(GroupKind::kNamed, "a", {{kFirstGpu, kGi, 3 * kGi}}, {})});
  CHECK(seen.groups.at(0).free() == 0);
}

TEST_CASE("a group without requests has a row that counts its processes") {
  const Usage seen = usage({group(GroupKind::kNamed, "a", {{kFirstGpu, ledger::kNoLimit, 0}}, {member(1, 10, {})})});
  CHECK(seen.processes.empty());
  REQUIRE(seen.groups.size() == 1);
  CHECK(seen.groups[0].uuid.empty());
  CHECK(seen.groups[0].processes == 1);
  CHECK_FALSE(seen.is_empty());
}

TEST_CASE("an unreadable group is reported, and the others are shown") {
  ledger::Group broken = group(GroupKind::kNamed, "b", {}, {});
  broken.problem = "/dev/shm/ration-0/group-b: it is damaged";
  const Usage seen = usage_of({broken, group(GroupKind::kNamed, "a", {}, {member(1, 10, {use(kFirstGpu, kGi)})})},
                              "the folder is not yours", kNow);
  CHECK(seen.problems ==
        std::vector<std::string>{"the folder is not yours", "/dev/shm/ration-0/group-b: it is damaged"});
  CHECK(seen.processes.size() == 1);
  CHECK(seen.groups.size() == 1);
}

TEST_CASE("rows are sorted by the chosen key") {
  ledger::Member old = member(1, 30, {use(kFirstGpu, kGi)});
  ledger::Member large = member(2, 20, {use(kFirstGpu, 4 * kGi)});
  ledger::Member busy = member(3, 10, {use(kFirstGpu, 2 * kGi)});
  old.start_unix_ns = 1;
  busy.devices[0].used = 2 * kGi;
  large.devices[0].used = 0;
  Usage seen = usage({group(GroupKind::kNamed, "b", {}, {old}), group(GroupKind::kNamed, "c", {}, {large}),
                      group(GroupKind::kNamed, "a", {}, {busy})});
  const auto pids_by = [&seen](SortKey key) {
    sort_rows(seen.processes, key);
    return pids_of(seen);
  };
  using Pids = std::vector<int>;
  CHECK(pids_by(SortKey::kReserved) == Pids{20, 10, 30});
  CHECK(pids_by(SortKey::kUsed) == Pids{10, 30, 20});
  CHECK(pids_by(SortKey::kPid) == Pids{10, 20, 30});
  CHECK(pids_by(SortKey::kAge) == Pids{30, 20, 10});
  CHECK(pids_by(SortKey::kGroup) == Pids{10, 30, 20});
  seen.processes[0].use.limit = kGi;                 // 10
  seen.processes[1].use.peak = 9 * kGi;              // 30
  seen.processes[2].use.failures = {0, 0, 2, 0, 1};  // 20
  for (ProcessRow &row : seen.processes) {
    row.user = row.pid == 20 ? "ada" : "grace";
    row.command = row.pid == 30 ? "/usr/bin/a" : "/bin/b";
  }
  CHECK(pids_by(SortKey::kLimit) == Pids{10, 20, 30});
  CHECK(pids_by(SortKey::kPeak) == Pids{30, 20, 10});
  CHECK(pids_by(SortKey::kFailures) == Pids{20, 10, 30});
  CHECK(pids_by(SortKey::kUser) == Pids{20, 10, 30});
  CHECK(pids_by(SortKey::kCommand) == Pids{30, 20, 10});
  sort_rows(seen.processes, SortKey::kCommand, true);
  CHECK(pids_of(seen) == Pids{10, 20, 30});
}

TEST_CASE("rows are sorted by the index of their device, and those without one come behind by UUID") {
  Usage seen =
      one_process(member(1, 10, {use(kFirstGpu, kGi), use(kSecondGpu, kGi), use("GPU-aa", kGi), use("MIG-bb", kGi)}));
  number_devices(seen, {{kFirstGpu, 10}, {kSecondGpu, 2}});
  const std::vector<std::string> wanted = {kSecondGpu, kFirstGpu, "GPU-aa", "MIG-bb"};
  sort_rows(seen.processes, SortKey::kGpu);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(seen.processes.at(i).use.uuid == wanted[i]);
    CHECK(seen.devices.at(i).uuid == wanted[i]);
  }
  CHECK(seen.devices[1].gpu == 10);
  CHECK(seen.devices[2].gpu == kNoIndex);
}

TEST_CASE("a device's row adds up its processes, each once, and has the size that a group knows") {
  ledger::GroupDevice sized{kFirstGpu, 8 * kGi, 3 * kGi};
  sized.size = 80 * kGi;
  const std::vector<ledger::Member> members = {member(1, 10, {use(kFirstGpu, kGi)}),
                                               member(2, 11, {use(kFirstGpu, 2 * kGi)})};
  const Usage seen =
      usage({group(GroupKind::kNamed, "a", {sized}, members), group(GroupKind::kTree, kTree, {}, members)});
  REQUIRE(seen.devices.size() == 1);
  CHECK(seen.devices[0].reserved == 3 * kGi);
  CHECK(seen.devices[0].used == 3 * kGi / 2);
  CHECK(seen.devices[0].size == 80 * kGi);
  CHECK(seen.devices[0].processes == 2);
  CHECK(seen.groups.at(0).used == 3 * kGi / 2);
}

TEST_CASE("what the folders of two users hold is one snapshot") {
  Usage both = one_process(member(1, 10, {use(kFirstGpu, kGi)}));
  both.problems = {"one"};
  Usage more = one_process(member(2, 11, {use(kFirstGpu, 2 * kGi), use(kSecondGpu, kGi)}));
  more.problems = {"two"};
  add_usage(both, more);
  CHECK(pids_of(both) == std::vector<int>{11, 10, 11});
  CHECK(both.groups.size() == 2);
  CHECK(both.problems == std::vector<std::string>{"one", "two"});
  REQUIRE(both.devices.size() == 2);
  CHECK(both.devices[0].reserved == 3 * kGi);
  CHECK(both.devices[0].processes == 2);
}

TEST_CASE("a text finds rows by program, command, user, group, container and process ID, in any case") {
  ProcessRow row = one_process(member(1, 4711, {use(kFirstGpu, kGi)})).processes.at(0);
  row.program = "/opt/Trainer";
  row.command = "/opt/Trainer --seed 7";
  row.user = "ada";
  row.group_label = "nightly";
  row.here.container = "web-7f";
  for (const char *text : {"trainer", "SEED", "ada", "Night", "web-", "471", ""}) {
    CHECK(matches(row, text));
  }
  CHECK_FALSE(matches(row, "grace"));
}

TEST_CASE("a command is shown without its folder, the program's name where there is none") {
  ProcessRow row;
  row.program = "/opt/bin/train";
  CHECK(row.shown_command() == "train");
  row.program = "ration run /opt/bin/train";
  CHECK(row.shown_command() == "ration run train");
  row.program = "/opt/bin/";
  CHECK(row.shown_command() == "/opt/bin/");
  row.command = "/usr/bin/python3 /srv/train.py";
  CHECK(row.shown_command() == "python3 /srv/train.py");
  row.command = "train /srv/data";
  CHECK(row.shown_command() == "train /srv/data");
}

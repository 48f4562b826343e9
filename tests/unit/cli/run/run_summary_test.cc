#include "cli/run/run_summary.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "catch.h"
#include "cli/run/temporary_folder.h"
#include "ledger/group_view.h"
#include "tests/unit/cli/launch/elf_image.h"

using namespace ration;
using cli::summary_lines;
using Lines = std::vector<std::string>;

namespace {

events::Summary::Device device(std::uint64_t peak, std::uint64_t allocs) {
  events::Summary::Device out{};
  out.total = 16ull << 30;
  out.limit = 8ull << 30;
  out.limit_asked = true;
  out.peak_bytes = peak;
  out.reserved_peak_bytes = peak;
  out.allocs = allocs;
  out.frees = allocs;
  return out;
}

constexpr std::uint32_t named() {
  return static_cast<std::uint32_t>(ledger::GroupKind::kNamed);
}

events::Summary process(std::int64_t pid, std::vector<events::Summary::Device> devices) {
  events::Summary out;
  out.pid = pid;
  out.program = "train";
  out.devices = std::move(devices);
  return out;
}

}  // namespace

TEST_CASE("a command without CUDA calls has no summary") {
  CHECK(summary_lines({}).empty());
  CHECK(cli::summary_json({}) == R"({"schema":"ration.summary/1","processes":[]})");
}

TEST_CASE("the largest request that was refused is told, and how much was lacking, or the largest free piece") {
  events::Summary::Device refused = device(1 << 20, 1);
  refused.denied[0] = 2;
  refused.largest_refused = {600 << 20, 0, 0, 0};
  CHECK(summary_lines({process(42, {refused})}).at(1).ends_with("600MiB requested, the largest free piece had 0B"));
  refused.largest_refused.largest_free = UINT64_MAX;
  CHECK(summary_lines({process(42, {refused})}).at(1).ends_with("largest refused: 600MiB requested"));
  refused.largest_refused = {600 << 20, 0, 50 << 20, 0};
  CHECK(summary_lines({process(42, {refused})}).at(1).ends_with("600MiB requested, at least 50MiB short"));
  refused.largest_refused = {600 << 20, 100 << 20, 50 << 20, 500 << 20};
  CHECK(summary_lines({process(42, {refused})}).at(1) ==
        "  1 allocation, 1 free, 2 refused: 2 over the limit; largest refused: 600MiB requested, 100MiB short");
  refused.largest_refused = {1 << 20, 2 << 20, 1 << 20, 0};
  CHECK(summary_lines({process(42, {refused})}).at(1).ends_with("1MiB requested, 2MiB short, in whole pages"));
  refused.largest_refused = {600 << 20, 100 << 20, 50 << 20, 500 << 20};
  const auto json = nlohmann::json::parse(cli::summary_json({process(42, {device(0, 0), refused})}));
  const auto &row = json.at("processes").at(0).at("devices").at(0);
  CHECK(row.at("dev") == 1);
  CHECK(row.at("largest_refused_bytes") == 600 << 20);
  CHECK(row.at("lacking_bytes") == 100 << 20);
  CHECK(row.at("largest_free_bytes") == 500 << 20);
  CHECK(row.at("refusals_by_reason").at("limit") == 2);
  CHECK(row.at("limit") == 8ull << 30);
  CHECK(row.at("group_limit").is_null());
}

TEST_CASE("who held what was lacking is named: a program without its folder, a run by its words") {
  events::Summary::Device refused = device(1 << 20, 1);
  refused.denied[1] = 1;
  refused.holders = {
      {7, "/opt/train", 1 << 20, 0, 0}, {8, "ration run ./train", 0, 0, 2 << 20}, {9, "c", 1 << 20, 0, 3 << 20}};
  refused.more_holders = 2;
  CHECK(
      summary_lines({process(42, {refused})}).at(2) ==
      "  at the first refusal: train (pid 7) held 1MiB, ration run ./train (pid 8) kept 2MiB free under its guarantee, "
      "c (pid 9) held 1MiB and kept 2MiB free under its guarantee, and 2 more");
}

TEST_CASE("a process without allocations is not reported as one without CUDA calls") {
  CHECK(summary_lines({process(1, {})}) == Lines{"no device memory was requested"});
  CHECK(summary_lines({process(1, {device(0, 0)})}) == Lines{"no device memory was requested"});
}

TEST_CASE("one process on one device: peak, limit and counts") {
  CHECK(summary_lines({process(42, {device(6871947673, 3)})}) ==
        Lines{"train (pid 42) device 0: used at most 6.40GiB and reserved at most 6.40GiB of the limit of 8.00GiB",
              "  3 allocations, 3 frees, 0 refused"});
}

TEST_CASE("memory that no allocation took is reported") {
  events::Summary::Device graphs = device(0, 0);
  graphs.reserved_peak_bytes = 1 << 20;
  CHECK(
      summary_lines({process(42, {graphs})}).at(0) ==
      "train (pid 42) device 0: used at most 0B and reserved at most 1MiB (for graphs, or in advance) of the limit of "
      "8.00GiB");
}

TEST_CASE("the driver's own memory is told with what could not be measured of it") {
  events::Summary::Device overhead = device(0, 1);
  overhead.overhead_peak = 1 << 20;
  CHECK(summary_lines({process(42, {overhead})}).at(1) ==
        "  1 allocation, 1 free, 0 refused; the driver's own memory: peak 1MiB");
  overhead.overhead_unmeasured = 2;
  CHECK(summary_lines({process(42, {overhead})})
            .at(1)
            .ends_with("the driver's own memory: peak 1MiB without that of 2 contexts"));
}

TEST_CASE("without a limit the summary names none") {
  events::Summary::Device unlimited = device(1 << 20, 1);
  unlimited.limit_asked = false;
  CHECK(summary_lines({process(42, {unlimited})}) ==
        Lines{"train (pid 42) device 0: used at most 1MiB and reserved at most 1MiB, no limit",
              "  1 allocation, 1 free, 0 refused"});
}

TEST_CASE("each group is named with its limit, and what all members held at most") {
  events::Summary::Device member = device(1 << 20, 1);
  member.groups = {{named(), "lab", 12ull << 30, 11ull << 30}};
  CHECK(summary_lines({process(42, {member})})[0] ==
        "train (pid 42) device 0: used at most 1MiB and reserved at most 1MiB of the limit of 8.00GiB and of the group "
        "lab's limit of 12.0GiB (all "
        "members: up to 11.0GiB seen)");
  member.limit_asked = false;
  CHECK(summary_lines({process(42, {member})})[0] ==
        "train (pid 42) device 0: used at most 1MiB and reserved at most 1MiB of the group lab's limit of 12.0GiB (all "
        "members: up to 11.0GiB seen)");
  member.groups.push_back({static_cast<std::uint32_t>(ledger::GroupKind::kTree), "0123456789abcdef", 4ull << 30, 1});
  member.groups.push_back({static_cast<std::uint32_t>(ledger::GroupKind::kContainer), "7-x", 2ull << 30, 0});
  CHECK(summary_lines({process(42, {member})})[0].ends_with(
      "of the group lab's limit of 12.0GiB (all members: up to 11.0GiB seen) and of tree:01234567's limit of 4.00GiB "
      "(all "
      "members: up to 1B seen) and of the container's limit of 2.00GiB (all members: up to 0B seen)"));
}

TEST_CASE("a named group without a limit is named, a tree without one is there for a guarantee") {
  events::Summary::Device member = device(1 << 20, 1);
  member.limit_asked = false;
  member.groups = {{named(), "lab", 0, 1 << 20},
                   {static_cast<std::uint32_t>(ledger::GroupKind::kTree), "0123456789abcdef", 0, 1 << 20}};
  CHECK(summary_lines({process(42, {member})})[0] ==
        "train (pid 42) device 0: used at most 1MiB and reserved at most 1MiB, no limit, in the group lab (all "
        "members: up to 1MiB seen)");
}

TEST_CASE("what the members of a group held at most is the most that any of them saw, on that device") {
  const auto member = [](const char *uuid, std::uint64_t seen) {
    events::Summary::Device out = device(1 << 20, 1);
    out.uuid = uuid;
    out.limit_asked = false;
    out.groups = {{named(), "lab", 12ull << 30, seen}};
    return out;
  };
  const Lines lines =
      summary_lines({process(1, {member("GPU-a", 2ull << 30)}), process(2, {member("GPU-a", 5ull << 30)}),
                     process(3, {member("GPU-b", 7ull << 30)})});
  CHECK(lines[1].ends_with("(all members: up to 5.00GiB seen)"));
  CHECK(lines[3].ends_with("(all members: up to 5.00GiB seen)"));
  CHECK(lines[5].ends_with("(all members: up to 7.00GiB seen)"));
  // A group that ended before another one of its name began is not that one.
  events::Summary::Device later = member("GPU-a", 1ull << 30);
  later.groups[0].random = 7;
  CHECK(summary_lines({process(1, {member("GPU-a", 2ull << 30)}), process(2, {later})})[3].ends_with(
      "(all members: up to 1.00GiB seen)"));
}

TEST_CASE("the JSON of a group has exact bytes, and its name as ration ps has it") {
  events::Summary::Device member = device(1 << 20, 1);
  member.uuid = "GPU-a";
  member.groups = {{static_cast<std::uint32_t>(ledger::GroupKind::kTree), "0123456789abcdef", 4ull << 30, 1}};
  const auto json = nlohmann::json::parse(cli::summary_json({process(42, {member})}));
  const auto &row = json.at("processes").at(0).at("devices").at(0);
  CHECK(row.at("uuid") == "GPU-a");
  CHECK(
      row.at("groups").dump() ==
      R"([{"claimed_peak_bytes":1,"group":"tree:01234567","kind":"tree","limit":4294967296,"name":"0123456789abcdef"}])");
}

TEST_CASE("refusals are counted by reason, and unfreed blocks are reported") {
  events::Summary::Device one = device(1 << 20, 5);
  one.denied[static_cast<int>(events::Reason::limit)] = 2;
  one.denied[static_cast<int>(events::Reason::device)] = 1;
  one.live_count = 2;
  one.live_bytes = 3000;
  CHECK(summary_lines({process(1, {one})})[1] ==
        "  5 allocations, 5 frees, 3 refused: 2 over the limit, 1 because the device was full; not freed: 2 blocks, "
        "2.93KiB");
}

TEST_CASE("the group that refused is named by its kind") {
  events::Summary::Device one = device(1 << 20, 1);
  one.denied[static_cast<int>(events::Reason::group)] = 1;
  const auto why = [&one] { return summary_lines({process(1, {one})})[1]; };
  one.groups = {{static_cast<std::uint32_t>(ledger::GroupKind::kContainer), "4026531836-1234", 1 << 30, 0},
                {named(), "lab", 0, 0}};
  CHECK(why() == "  1 allocation, 1 free, 1 refused: 1 over the container's limit");
  one.groups[1].limit = 1 << 30;
  CHECK(why() == "  1 allocation, 1 free, 1 refused: 1 over a group's limit");
  one.groups = {{static_cast<std::uint32_t>(ledger::GroupKind::kTree), "12345678ab", 1 << 30, 0}};
  CHECK(why() == "  1 allocation, 1 free, 1 refused: 1 over the limit of its --group-tree");
}

TEST_CASE("each reason is in plain words") {
  events::Summary::Device one = device(1 << 20, 1);
  one.denied[static_cast<int>(events::Reason::group)] = 1;
  one.denied[static_cast<int>(events::Reason::pool_holds)] = 2;
  one.denied[static_cast<int>(events::Reason::fault)] = 3;
  CHECK(summary_lines({process(1, {one})})[1] ==
        "  1 allocation, 1 free, 6 refused: 1 over the group's limit, 2 because the pool was fragmented, 3 on "
        "purpose "
        "(--fail)");
}

TEST_CASE("a device on which every request was refused is reported") {
  events::Summary::Device one = device(0, 0);
  one.denied[0] = 1;
  CHECK(summary_lines({process(1, {device(0, 0), one})})[0].find("device 1: used at most 0B and reserved at most 0B") !=
        std::string::npos);
}

TEST_CASE("calls that failed for another reason are reported") {
  events::Summary failing = process(1, {device(1 << 20, 1)});
  failing.failed_allocs = 1;
  failing.failed_frees = 2;
  CHECK(summary_lines({failing}).back() == "  1 allocation failed in the driver, 2 frees refused");
}

TEST_CASE("a program's name is shown as ps shows it") {
  events::Summary named = process(1, {device(1 << 20, 1)});
  named.program = "caf\xc3\xa9\x1b[2J";
  CHECK(summary_lines({named})[0].starts_with("caf\xc3\xa9\\x1b[2J (pid 1) device 0: "));
}

TEST_CASE("of several processes the failures are one line") {
  std::vector<events::Summary> all = {process(1, {device(1 << 20, 1)}), process(2, {}), process(3, {})};
  all[1].failed_frees = 1;
  CHECK(summary_lines(all).back() == "train (pid 2): 1 free refused");
  all[2].failed_allocs = all[2].failed_frees = 2;
  CHECK(summary_lines(all).back() == "2 processes: 2 allocations failed in the driver, 3 frees refused");
}

TEST_CASE("the remainder tells what was refused to it") {
  std::vector<events::Summary> all(4, process(1, {device(1 << 20, 1)}));
  events::Summary::Device refused = device(0, 0);
  refused.denied[0] = 1;
  all.push_back(process(5, {refused}));
  CHECK(summary_lines(all).back() == "and 2 more that used at most 1MiB each, of whose allocations 1 was refused");
  all.back().devices[0].denied[1] = 2;
  CHECK(summary_lines(all).back() == "and 2 more that used at most 1MiB each, of whose allocations 3 were refused");
}

TEST_CASE("the most that was used stands beside the most that was reserved") {
  events::Summary::Device pooled = device(1 << 20, 1);
  pooled.reserved_peak_bytes = 8ull << 30;
  CHECK(summary_lines({process(1, {pooled})})[0] ==
        "train (pid 1) device 0: used at most 1MiB and reserved at most 8.00GiB of the limit of 8.00GiB");
}

TEST_CASE("where most of what was reserved was never used, the summary says why") {
  events::Summary::Device pooled = device(2ull << 30, 1);
  pooled.reserved_peak_bytes = 8ull << 30;
  pooled.preallocated = 6ull << 30;
  CHECK(summary_lines({process(1, {pooled})}).size() == 2);  // a quarter of it was
  --pooled.peak_bytes;
  CHECK(summary_lines({process(1, {pooled})})[1] ==
        "  most of it was never used: 6.00GiB was preallocated (with RATION_PREALLOCATE=false the pool takes what is "
        "needed)");
  pooled.preallocated = 1ull << 30;
  CHECK(summary_lines({process(1, {pooled})})[1] ==
        "  most of it was not used at once: pools grow in steps, and give freed memory out again only when the GPU is "
        "done with it");
  pooled.peak_bytes = 6 << 20;
  pooled.reserved_peak_bytes = 66 << 20;
  CHECK(summary_lines({process(1, {pooled})}).size() == 2);
}

TEST_CASE("a refused IPC handle is reported separately from refused memory") {
  events::Summary sharing = process(1, {device(1 << 20, 1)});
  sharing.refused_shares = 1;
  CHECK(summary_lines({sharing}).back() == "  1 handle to share memory refused (the pool holds it)");
  sharing.failed_frees = 1;
  CHECK(summary_lines({sharing}).back() == "  1 free refused, 1 handle to share memory refused (the pool holds it)");
}

TEST_CASE("pinned host memory is reported, and the unfreed part of it") {
  events::Summary pinning = process(1, {device(1 << 20, 1)});
  pinning.host_peak_bytes = 3 << 20;
  CHECK(summary_lines({pinning}).back() == "  pinned host memory: peak 3MiB, no limit");
  pinning.host_bytes = 5000;
  CHECK(summary_lines({pinning}).back() == "  pinned host memory: peak 3MiB, no limit; not freed: 4.88KiB");
}

TEST_CASE("managed memory that is only counted is reported") {
  events::Summary counting = process(1, {device(1 << 20, 1)});
  counting.managed_peak_bytes = 3 << 20;
  CHECK(summary_lines({counting}).back() == "  managed memory: peak 3MiB, no limit");
}

TEST_CASE("a process that only pinned host memory is reported") {
  events::Summary pinning = process(1, {device(0, 0)});
  pinning.host_peak_bytes = 1 << 20;
  CHECK(summary_lines({pinning}) ==
        Lines{"no device memory was requested", "  pinned host memory: peak 1MiB, no limit"});
}

TEST_CASE("of several processes the one that pinned most is named") {
  std::vector<events::Summary> all = {process(1, {device(2, 1)}), process(2, {device(1, 1)}), process(3, {})};
  all[1].host_peak_bytes = all[2].host_peak_bytes = 2 << 20;
  CHECK(summary_lines(all).back() == "train (pid 2) pinned host memory: peak 2MiB, no limit");
}

TEST_CASE("of many processes the largest peaks are reported, in at most nine lines") {
  std::vector<events::Summary> all;
  for (int i = 1; i <= 50; ++i) {
    all.push_back(process(i, {device(static_cast<std::uint64_t>(i) << 20, 1), device(1, 1)}));
  }
  all.back().host_peak_bytes = 1 << 20;
  const Lines lines = summary_lines(all);
  REQUIRE(lines.size() == 9);
  CHECK(lines[0] == "50 processes used CUDA");
  CHECK(lines[1].find("train (pid 50) device 0: used at most 50MiB and reserved at most 50MiB") == 0);
  CHECK(lines[5].find("train (pid 48) device 0: used at most 48MiB and reserved at most 48MiB") == 0);
  CHECK(lines[7] == "and 97 more that used at most 47MiB each");
  CHECK(lines[8].find("train (pid 50) pinned host memory: peak 1MiB") == 0);
}

TEST_CASE("a log that lacks records is named, with the processes where there are several") {
  events::Summary one = process(42, {device(1 << 20, 1)});
  one.lost_records = 1;
  one.lost_error = ENOSPC;
  CHECK(summary_lines({one}).back() == "the log is incomplete: 1 record could not be written: No space left on device");
  events::Summary other = process(43, {device(1 << 20, 1)});
  other.lost_records = 4;
  CHECK(summary_lines({one, other, process(44, {device(1 << 20, 1)})}).back() ==
        "the log of 2 processes is incomplete: 5 records could not be written: No space left on device");
  one.lost_error = EFBIG;
  CHECK(summary_lines({one}).back() ==
        "the log is incomplete: 1 record could not be written: the limit of file sizes (ulimit -f) is reached");
}

TEST_CASE("pages of nested runs are found, and other files are ignored") {
  const cli::TemporaryFolder folder;
  mkdir((folder.path() + "/inner").c_str(), 0700);
  REQUIRE(events::create_summary_page(folder.path(), 7, "outer") != nullptr);
  REQUIRE(events::create_summary_page(folder.path() + "/inner", 8, "inner") != nullptr);
  cli::write_file(folder.path() + "/9", "no page");
  cli::write_file(folder.path() + "/10", std::string(1 << 20, '\xff'));
  CHECK(cli::read_summaries(folder.path()).size() == 2);
  CHECK(cli::read_summaries(folder.path() + "/nowhere").empty());
}

TEST_CASE("functions that may take memory and are not known have one line") {
  events::Summary one = process(42, {device(1 << 20, 1)});
  CHECK(summary_lines({one}).size() == 2);
  one.unknown_of_memory = 1;
  one.unknown = {"cuMemNovelty"};
  CHECK(summary_lines({one}).back() ==
        "asked for 1 function that this Ration does not know, or not in that version, and that may take memory: "
        "cuMemNovelty (run again with --log FILE, and `ration report FILE` explains)");
  events::Summary other = process(43, {device(1 << 20, 1)});
  other.unknown_of_memory = 5;
  other.unknown = {"cuMemA", "cuMemB", "cuMem\nC"};
  CHECK(
      summary_lines({one, other}).back() ==
      "train (pid 43) asked for 5 functions that this Ration does not know, or not in that version, and that may take "
      "memory: cuMemA, cuMemB, cuMem\\x0aC and 2 more (run again with --log FILE, and `ration report FILE` explains)");
  other.unknown_is_cut = true;
  CHECK(
      summary_lines({one, other}, true).back() ==
      "train (pid 43) asked for at least 5 functions that this Ration does not know, or not in that version, and that "
      "may take memory: cuMemA, cuMemB, cuMem\\x0aC and at least 2 more (`ration report LOG` explains)");
}

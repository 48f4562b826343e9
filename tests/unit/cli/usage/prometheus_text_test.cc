#include "cli/usage/prometheus_text.h"

#include <set>
#include <sstream>

#include "catch.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;

namespace {

constexpr std::uint64_t kHere = 4026531836;

std::vector<std::string> lines_of(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool has_line(const std::string &text, const std::string &line) {
  const auto lines = lines_of(text);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

std::string labels(const std::string &exe) {
  return "gpu=\"" + std::string(kFirstGpu) + "\",pid=\"10\",exe=\"" + exe + "\",group=\"-\"";
}

std::string text_for_program(const std::string &program) {
  ledger::Member process = member(1, 10, {use(kFirstGpu, kGi)});
  process.program = program;
  return prometheus_text(one_process(process), kHere);
}

}  // namespace

TEST_CASE("each figure of a process is a series of its metric family") {
  ledger::Member train = member(1, 10, {use(kFirstGpu, kGi)});
  train.devices[0].limit = 8 * kGi;
  train.devices[0].peak = 2 * kGi;
  train.devices[0].peak_used = 3 * kGi / 2;
  train.devices[0].guarantee = 3 * kGi;
  train.devices[0].waiting = kMi;
  train.devices[0].allocations = 12;
  train.devices[0].failures = {3, 0, 0, 0, 1};
  train.devices[0].stitching = {512, 2, 40};
  const std::string text = prometheus_text(one_process(train), kHere);
  CHECK(has_line(text, "ration_memory_limit_bytes{" + labels("train") + "} 8589934592"));
  CHECK(has_line(text, "ration_memory_reserved_bytes{" + labels("train") + "} 1073741824"));
  CHECK(has_line(text, "ration_memory_used_bytes{" + labels("train") + "} 536870912"));
  CHECK(has_line(text, "ration_memory_reserved_peak_bytes{" + labels("train") + "} 2147483648"));
  CHECK(has_line(text, "ration_memory_used_peak_bytes{" + labels("train") + "} 1610612736"));
  CHECK(has_line(text, "# HELP ration_memory_reserved_peak_bytes Peak of ration_memory_reserved_bytes so far."));
  CHECK(has_line(text, "# HELP ration_memory_used_peak_bytes Peak of ration_memory_used_bytes so far."));
  CHECK(has_line(text, "ration_memory_guarantee_bytes{" + labels("train") + "} 3221225472"));
  CHECK(has_line(text, "ration_memory_waiting_bytes{" + labels("train") + "} 1048576"));
  CHECK(has_line(text, "ration_allocations_total{" + labels("train") + "} 12"));
  CHECK(has_line(text, "ration_granules{" + labels("train") + "} 512"));
  CHECK(has_line(text, "ration_stitched_blocks{" + labels("train") + "} 2"));
  CHECK(has_line(text, "ration_stitched_total{" + labels("train") + "} 40"));
  CHECK(has_line(text, "ration_alloc_failures_total{" + labels("train") + ",reason=\"limit\"} 3"));
  CHECK(has_line(text, "ration_alloc_failures_total{" + labels("train") + ",reason=\"group\"} 0"));
  CHECK(has_line(text, "ration_alloc_failures_total{" + labels("train") + ",reason=\"fault\"} 1"));
  CHECK(text.back() == '\n');
}

TEST_CASE("a named group's figures are series of the device and the group") {
  std::vector<ledger::Group> groups = with_guarantees({kGi});
  groups.push_back(group(GroupKind::kNone, "", {{kFirstGpu, ledger::kNoLimit, kGi}}, {}));
  const std::string text = prometheus_text(usage(groups), kHere);
  const std::string named = "{gpu=\"" + std::string(kFirstGpu) + "\",group=\"a\"}";
  CHECK(has_line(text, "ration_group_limit_bytes" + named + " 8589934592"));
  CHECK(has_line(text, "ration_group_reserved_bytes" + named + " 1610612736"));
  CHECK(has_line(text, "ration_group_used_bytes" + named + " 805306368"));
  CHECK(has_line(text, "ration_group_processes" + named + " 2"));
  CHECK(has_line(text, "ration_group_claimed_bytes" + named + " 4294967296"));
  CHECK(has_line(text, "ration_group_guaranteed_bytes" + named + " 4294967296"));
  CHECK(has_line(text, "ration_group_waiting" + named + " 1"));
  CHECK(text.find("group_claimed_bytes{gpu=\"" + std::string(kFirstGpu) + "\",group=\"-\"}") == std::string::npos);
}

TEST_CASE("no series has the number of a run, in a label that would be another one each time") {
  const ledger::Member job = member(1, 10, {use(kFirstGpu, kGi)});
  const std::string text =
      prometheus_text(usage({group(GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, kGi}}, {job}),
                             group(GroupKind::kTree, "00000000000000a7", {{kFirstGpu, kGi, kGi}}, {job}),
                             group(GroupKind::kContainer, "4026532999-12345678", {{kFirstGpu, kGi, kGi}}, {job})}),
                      kHere);
  CHECK(text.find("tree:") == std::string::npos);
  CHECK(text.find("4026532999-12345678") == std::string::npos);
  CHECK(has_line(text, "ration_memory_reserved_bytes{gpu=\"" + std::string(kFirstGpu) +
                           "\",pid=\"10\",exe=\"train\",group=\"a\"} 1073741824"));
}

TEST_CASE("a device's size, free memory and what others hold are series of it, where they are known") {
  Usage seen = one_process(member(1, 10, {use(kFirstGpu, kGi)}));
  CHECK(prometheus_text(seen, kHere).find("ration_device_memory_free_bytes{") == std::string::npos);
  add_figures(seen, {figures_of(kFirstGpu)});
  const std::string text = prometheus_text(seen, kHere);
  const std::string device = "{gpu=\"" + std::string(kFirstGpu) + "\"}";
  CHECK(has_line(text, "ration_device_memory_size_bytes" + device + " 85899345920"));
  CHECK(has_line(text, "ration_device_memory_free_bytes" + device + " 80530636800"));
  CHECK(has_line(text, "ration_device_memory_others_bytes" + device + " 4294967296"));
}

TEST_CASE("a process without a limit has no limit series") {
  CHECK(text_for_program("train").find("ration_memory_limit_bytes{") == std::string::npos);
}

TEST_CASE("a family's lines are adjacent, after one HELP and one TYPE, without a duplicate series") {
  const std::string text = prometheus_text(
      usage({group(GroupKind::kNamed, "a", {}, {member(1, 10, {use(kFirstGpu, kGi), use(kSecondGpu, kGi)})}),
             group(GroupKind::kNamed, "b", {},
                   {member(1, 10, {use(kFirstGpu, kGi)}), member(2, 11, {use(kFirstGpu, kGi)})})}),
      kHere);
  std::string family;
  std::set<std::string> families, series;
  for (const std::string &line : lines_of(text)) {
    if (line.rfind("# HELP ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families.insert(family).second);
    } else if (line.rfind("# TYPE ", 0) == 0) {
      CHECK(line.rfind("# TYPE " + family + (family.find("_total") == std::string::npos ? " gauge" : " counter"), 0) ==
            0);
    } else {
      CHECK(line.rfind(family + "{", 0) == 0);
      CHECK(series.insert(line.substr(0, line.rfind(' '))).second);
    }
  }
  CHECK(families.size() == 22);
  CHECK(series.size() == 3 * (10 + 5));
}

TEST_CASE("backslash, quotation mark and newline are escaped in a label") {
  CHECK(text_for_program("a\\b\"c\nd").find("exe=\"a\\\\b\\\"c\\nd\"") != std::string::npos);
}

TEST_CASE("a label is UTF-8 without control characters") {
  CHECK(text_for_program("\xff\xc3\xa9").find("exe=\"\xef\xbf\xbd\xc3\xa9\"") != std::string::npos);
  CHECK(text_for_program("a\x1b\x7f\xc2\x9b").find("exe=\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") !=
        std::string::npos);
}

TEST_CASE("a label distinguishes equal pids of two PID namespaces") {
  ledger::Member elsewhere = member(2, 10, {use(kFirstGpu, kMi)});
  elsewhere.pid_namespace = 4026532999;
  const std::string text = prometheus_text(
      usage({group(GroupKind::kNone, "", {}, {member(1, 10, {use(kFirstGpu, kGi)}), elsewhere})}), kHere);
  CHECK(has_line(text, "ration_memory_reserved_bytes{" + labels("train") + "} 1073741824"));
  CHECK(has_line(text, "ration_memory_reserved_bytes{" + labels("train") + ",pid_namespace=\"4026532999\"} 1048576"));
}

TEST_CASE("a process whose other labels are taken has its identity as a label") {
  const std::string text =
      prometheus_text(usage({group(GroupKind::kNone, "", {},
                                   {member(1, 10, {use(kFirstGpu, kGi)}), member(2, 10, {use(kFirstGpu, kMi)})})}),
                      kHere);
  CHECK(has_line(text, "ration_memory_reserved_bytes{" + labels("train") + "} 1073741824"));
  CHECK(has_line(text, "ration_memory_reserved_bytes{" + labels("train") + ",identity=\"2\"} 1048576"));
}

TEST_CASE("series have users only where the folders of all users were read") {
  Usage all =
      usage({group(GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, kGi}}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  all.processes.at(0).user = "ada";
  CHECK(prometheus_text(all, kHere).find("user=") == std::string::npos);
  all.groups.at(0).user = "ada";
  const std::string text = prometheus_text(all, kHere);
  CHECK(has_line(text, "ration_group_waiting{gpu=\"" + std::string(kFirstGpu) + "\",group=\"a\",user=\"ada\"} 0"));
  CHECK(text.find("group=\"a\",user=\"ada\"} 1073741824") != std::string::npos);
}

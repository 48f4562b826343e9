#include "cli/usage/usage_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "catch.h"
#include "usage_examples.h"

using namespace ration;
using namespace ration::cli;
using ledger::GroupKind;
using nlohmann::json;

namespace {

std::set<std::string> keys_of(const json &object) {
  std::set<std::string> keys;
  for (const auto &[key, value] : object.items()) {
    keys.insert(key);
  }
  return keys;
}

json of(const Usage &seen) {
  return json::parse(usage_json(seen, -1));
}

}  // namespace

TEST_CASE("without processes the JSON has empty lists") {
  const json empty = of(usage({}));
  CHECK(empty["schema"] == "ration.ps/1");
  CHECK(empty["processes"] == json::array());
  CHECK(empty["groups"] == json::array());
  CHECK(empty["problems"] == json::array());
}

TEST_CASE("a process's object has these keys, and figures in bytes") {
  ledger::Member train = member(0xfedcba9876543210, 14969, {use(kFirstGpu, kGi)});
  train.devices[0].limit = 8 * kGi;
  train.devices[0].group_limit = 9 * kGi;
  train.devices[0].guarantee = 3 * kGi;
  train.devices[0].waiting = 2 * kGi;
  train.devices[0].allocations = 12;
  train.devices[0].failures = {1, 2, 3, 4, 5};
  train.devices[0].stitching = {512, 2, 40};
  Usage one = usage({group(GroupKind::kTree, "0123456789abcdef", {{kFirstGpu, 7 * kGi, kGi}}, {train})});
  one.processes.at(0).command = "/opt/train --fast";
  one.processes.at(0).user = "ada";
  number_devices(one, {{kFirstGpu, 3}});
  const json process = of(one)["processes"].at(0);
  const json expected = {
      {"pid", 14969},
      {"host_pid", nullptr},
      {"container", nullptr},
      {"program", "train"},
      {"exe", "train"},
      {"command", "/opt/train --fast"},
      {"user", "ada"},
      {"group", "tree:01234567"},
      {"groups",
       {{{"group", "tree:01234567"},
         {"name", "0123456789abcdef"},
         {"kind", "tree"},
         {"limit", 7 * kGi},
         {"limit_stated", 9 * kGi},
         {"process_claimed_bytes", 3 * kGi}}}},
      {"uuid", kFirstGpu},
      {"gpu_index", 3},
      {"reserved_bytes", kGi},
      {"used_bytes", kGi / 2},
      {"limit", 8 * kGi},
      {"guarantee", 3 * kGi},
      {"waiting_bytes", 2 * kGi},
      {"waits_for", "device"},
      {"holders", json::array()},
      {"reserved_peak_bytes", kGi},
      {"peak_bytes", kGi / 2},
      {"allocs", 12},
      {"granules", 512},
      {"stitched_blocks", 2},
      {"stitched_total", 40},
      {"refusals", 15},
      {"refusals_by_reason", {{"limit", 1}, {"group", 2}, {"device", 3}, {"pool_holds", 4}, {"fault", 5}}},
      {"age_ns", 90 * kSecond},
      {"start_unix_ns", kNow - 90 * kSecond},
      {"published_age_ns", kSecond},
      {"uid", 1000},
      {"pid_namespace", 4026531836},
      {"identity", "fedcba9876543210"}};
  CHECK(process == expected);
}

TEST_CASE("a missing limit is null, and so is the name of no group") {
  const json seen = of(one_process(member(1, 10, {use(kFirstGpu, kGi)})));
  CHECK(seen["processes"].at(0)["limit"].is_null());
  CHECK(seen["processes"].at(0)["group"] == "-");
  const json one = seen["processes"].at(0)["groups"].at(0);
  CHECK(one == json{{"group", "-"},
                    {"name", nullptr},
                    {"kind", "none"},
                    {"limit", nullptr},
                    {"limit_stated", nullptr},
                    {"process_claimed_bytes", kGi}});
}

TEST_CASE("each kind of group has its word") {
  const std::pair<GroupKind, const char *> kinds[] = {{GroupKind::kNamed, "named"},
                                                      {GroupKind::kTree, "tree"},
                                                      {GroupKind::kContainer, "container"},
                                                      {GroupKind::kNone, "none"}};
  for (const auto &[kind, word] : kinds) {
    CHECK(of(usage({group(kind, "a", {}, {member(1, 10, {})})}))["groups"].at(0)["kind"] == word);
  }
}

TEST_CASE("a group's object has these keys") {
  const json seen =
      of(usage({group(GroupKind::kNamed, "a", {{kFirstGpu, 8 * kGi, kGi}}, {member(1, 10, {use(kFirstGpu, kGi)})}),
                group(GroupKind::kNone, "", {}, {member(2, 11, {})})}));
  CHECK(seen["groups"].at(0) == json{{"group", "a"},
                                     {"name", "a"},
                                     {"kind", "named"},
                                     {"uuid", kFirstGpu},
                                     {"gpu_index", nullptr},
                                     {"user", nullptr},
                                     {"used_bytes", kGi / 2},
                                     {"limit", 8 * kGi},
                                     {"reserved_bytes", kGi},
                                     {"claimed_bytes", kGi},
                                     {"guaranteed_bytes", 0},
                                     {"waiting_processes", 0},
                                     {"free_bytes", 7 * kGi},
                                     {"process_count", 1}});
  CHECK(seen["groups"].at(1)["uuid"].is_null());
  CHECK(seen["groups"].at(1)["free_bytes"].is_null());
  CHECK(keys_of(seen["groups"].at(1)) == keys_of(seen["groups"].at(0)));
}

TEST_CASE("a device's object has these keys") {
  ledger::GroupDevice sized{kFirstGpu, ledger::kNoLimit, kGi};
  sized.size = 80 * kGi;
  Usage one = usage({group(GroupKind::kNone, "", {sized}, {member(1, 10, {use(kFirstGpu, kGi)})})});
  CHECK(of(one)["devices"] == json{{{"uuid", kFirstGpu},
                                    {"gpu_index", nullptr},
                                    {"name", nullptr},
                                    {"total_bytes", 80 * kGi},
                                    {"reserved_bytes", kGi},
                                    {"used_bytes", kGi / 2},
                                    {"overhead_bytes", nullptr},
                                    {"others_bytes", nullptr},
                                    {"free_bytes", nullptr},
                                    {"utilisation_percent", nullptr},
                                    {"temperature_celsius", nullptr},
                                    {"process_count", 1}}});
  add_figures(one, {figures_of(kFirstGpu)});
  const json device = of(one)["devices"].at(0);
  CHECK(device["name"] == "NVIDIA H200");
  CHECK(device["gpu_index"] == 0);
  CHECK(device["others_bytes"] == 4 * kGi);
  CHECK(device["free_bytes"] == 75 * kGi);
  CHECK(device["utilisation_percent"] == 37);
  CHECK(device["temperature_celsius"] == 54);
  CHECK(of(one_process(member(1, 10, {use(kFirstGpu, kGi)})))["devices"].at(0)["total_bytes"].is_null());
}

TEST_CASE("a group's object says what is claimed, guaranteed and waited for") {
  const json seen = of(usage(with_guarantees({kGi})))["groups"].at(0);
  CHECK(seen["reserved_bytes"] == kGi + kGi / 2);
  CHECK(seen["claimed_bytes"] == 4 * kGi);
  CHECK(seen["guaranteed_bytes"] == 4 * kGi);
  CHECK(seen["waiting_processes"] == 1);
  CHECK(seen["free_bytes"] == 4 * kGi);
}

TEST_CASE("the compact form is one line of ASCII for any program name") {
  ledger::Member hostile = member(1, 10, {use(kFirstGpu, kGi)});
  hostile.program = "a\n\x1b\xff\x7f\xc3\xa9";
  const std::string line = usage_json(one_process(hostile), -1);
  CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  CHECK(json::parse(line)["processes"].at(0)["program"] == "a\n\x1b\xef\xbf\xbd\x7f\xc3\xa9");
}

#include "cli/usage/usage_json.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/base/program_name.h"
#include "cli/usage/waiting.h"
#include "logs/output/json_or_null.h"

namespace ration::cli {

namespace {

using nlohmann::json;

json limit_or_null(std::uint64_t bytes) {
  return logs::or_null(bytes != ledger::kNoLimit, bytes);
}

json text_or_null(const std::string &text) {
  return logs::or_null(!text.empty(), text);
}

json index_or_null(int gpu) {
  return logs::or_null(gpu != kNoIndex, gpu);
}

// As text, because many JSON parsers read numbers as doubles, which cannot hold 64 bits.
std::string identity_text(std::uint64_t identity) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(identity));
  return text;
}

json as_json(const ProcessRow &row, const Usage &usage) {
  const std::uint64_t now_unix_ns = usage.now_unix_ns;
  json reasons = json::object();
  for (std::size_t i = 0; i < ledger::kFailureReasons.size(); ++i) {
    reasons[ledger::kFailureReasons[i]] = row.use.failures[i];
  }
  json groups = json::array();
  for (const GroupOfRow &group : row.groups) {
    groups.push_back({{"group", group.label},
                      {"name", text_or_null(group.name)},
                      {"kind", kind_name(group.kind)},
                      {"limit", limit_or_null(group.limit)},
                      {"limit_stated", limit_or_null(group.stated_limit)},
                      {"process_claimed_bytes", group.claimed}});
  }
  json holders = json::array();
  json waits_for;
  if (row.use.waiting != 0) {
    const Scarcity scarcity = scarcity_for(usage, row);
    waits_for = scarcity.is_queue ? "queue" : scarcity.group.empty() ? "device" : "group";
    for (const ProcessRow *each : scarcity.holders) {
      holders.push_back({{"pid", each->pid},
                         {"program", program_name(each->program)},
                         {"reserved_bytes", each->use.reserved},
                         {"guarantee", each->use.guarantee}});
    }
  }
  const auto age_of = [now_unix_ns](std::uint64_t then) { return now_unix_ns - std::min(then, now_unix_ns); };
  return {{"pid", row.pid},
          {"host_pid", logs::or_null(row.here.pid != 0, row.here.pid)},
          {"container", text_or_null(row.here.container)},
          {"program", row.shown_program()},
          {"exe", row.program},
          {"command", text_or_null(row.command)},
          {"user", text_or_null(row.user)},
          {"group", row.group_label},
          {"groups", std::move(groups)},
          {"uuid", row.use.uuid},
          {"gpu_index", index_or_null(row.gpu)},
          {"reserved_bytes", row.use.reserved},
          {"used_bytes", row.use.used},
          {"limit", limit_or_null(row.use.limit)},
          {"guarantee", row.use.guarantee},
          {"waiting_bytes", row.use.waiting},
          {"waits_for", std::move(waits_for)},
          {"holders", std::move(holders)},
          {"reserved_peak_bytes", row.use.peak},
          {"peak_bytes", row.use.peak_used},
          {"allocs", row.use.allocations},
          {"granules", row.use.stitching.granules},
          {"stitched_blocks", row.use.stitching.blocks},
          {"stitched_total", row.use.stitching.total},
          {"refusals", row.refusals()},
          {"refusals_by_reason", std::move(reasons)},
          {"age_ns", age_of(row.start_unix_ns)},
          {"start_unix_ns", row.start_unix_ns},
          {"published_age_ns", age_of(row.use.published_unix_ns)},
          {"uid", row.uid},
          {"pid_namespace", row.pid_namespace},
          {"identity", identity_text(row.identity)}};
}

json as_json(const GroupRow &row) {
  return {{"group", row.label},
          {"name", text_or_null(row.name)},
          {"kind", kind_name(row.kind)},
          {"uuid", text_or_null(row.uuid)},
          {"gpu_index", index_or_null(row.gpu)},
          {"user", text_or_null(row.user)},
          {"used_bytes", row.used},
          {"limit", limit_or_null(row.limit)},
          {"reserved_bytes", row.reserved},
          {"claimed_bytes", row.claimed},
          {"guaranteed_bytes", row.guaranteed},
          {"waiting_processes", row.waiting},
          {"free_bytes", limit_or_null(row.free())},
          {"process_count", row.processes}};
}

json as_json(const DeviceRow &row) {
  return {{"uuid", row.uuid},
          {"gpu_index", index_or_null(row.gpu)},
          {"name", text_or_null(row.name)},
          {"total_bytes", logs::or_null(row.size != 0, row.size)},
          {"reserved_bytes", row.reserved},
          {"used_bytes", row.used},
          {"overhead_bytes", logs::or_null(row.overhead())},
          {"others_bytes", logs::or_null(row.others)},
          {"free_bytes", logs::or_null(row.free)},
          {"utilisation_percent", logs::or_null(row.utilisation)},
          {"temperature_celsius", logs::or_null(row.temperature)},
          {"process_count", row.processes}};
}

}  // namespace

std::string usage_json(const Usage &usage, int indent) {
  json document = {{"schema", "ration.ps/1"}, {"unix_ns", usage.now_unix_ns}, {"processes", json::array()},
                   {"groups", json::array()}, {"devices", json::array()},     {"problems", json::array()}};
  for (const ProcessRow &row : usage.processes) {
    document["processes"].push_back(as_json(row, usage));
  }
  for (const GroupRow &row : usage.groups) {
    document["groups"].push_back(as_json(row));
  }
  for (const DeviceRow &row : usage.devices) {
    document["devices"].push_back(as_json(row));
  }
  for (const std::string &problem : usage.problems) {
    document["problems"].push_back({{"what", problem}});
  }
  return document.dump(indent, ' ', true, json::error_handler_t::replace);
}

std::string as_utf8(const std::string &text) {
  const json value = text;
  return json::parse(value.dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace ration::cli

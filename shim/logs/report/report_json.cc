#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "logs/history/limit_need.h"
#include "logs/report/report.h"

namespace ration::logs {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson frames_of(const std::vector<StackFrame> &frames) {
  OrderedJson all = OrderedJson::array();
  for (const StackFrame &each : frames) {
    all.push_back({{"function", each.function}, {"file", each.file}, {"line", each.line}, {"library", each.library}});
  }
  return all;
}

// The same for readers who want to see it.
OrderedJson places_of(const std::vector<StackFrame> &frames) {
  OrderedJson all = OrderedJson::array();
  for (const StackFrame &each : frames) {
    all.push_back(place_of(each));
  }
  return all;
}

OrderedJson groups_of(const History::Device &device) {
  OrderedJson groups = OrderedJson::array();
  const auto of = [](const History::Groups &all, const std::string &name) {
    const auto found = all.find(name);
    return found != all.end() ? found->second : History::Group{};
  };
  for (const auto &[name, in_all] : device.in_all) {
    const History::Group peak = of(device.at_peak, name);
    const History::Group live = of(device.live, name);
    groups.push_back({{"name", name},
                      {"requested_bytes", in_all.bytes},
                      {"allocs", in_all.count},
                      {"peak_bytes", peak.bytes},
                      {"peak_count", peak.count},
                      {"live_bytes", live.bytes},
                      {"live_count", live.count}});
  }
  return groups;
}

OrderedJson holders_of(const History::RefusedBy &by) {
  OrderedJson holders = OrderedJson::array();
  for (const History::RefusedBy::Holder &each : by.holders) {
    holders.push_back(
        {{"pid", each.pid}, {"program", each.program}, {"reserved", each.reserved}, {"guarantee", each.guarantee}});
  }
  return holders;
}

OrderedJson refusals_of(const History &history, const History::Device &device) {
  OrderedJson refusals = OrderedJson::array();
  for (const History::Refusal &each : device.refusals) {
    refusals.push_back({{"api", each.api},
                        {"reason", each.reason},
                        {"count", each.count},
                        {"first_seq", each.first_seq},
                        {"largest_request", each.largest},
                        {"used", each.used},
                        {"limit", each.limit},
                        {"largest_free", each.largest_free},
                        {"device_free", each.device_free ? OrderedJson(*each.device_free) : OrderedJson()},
                        {"stack", places_of(history.stacks().frames(each.stack))},
                        {"remedy", remedy(each)}});
    if (!each.by.group.empty()) {
      refusals.back().update(
          {{"group", each.by.group}, {"group_limit", each.by.limit}, {"group_claimed", each.by.claimed}});
    }
    if (!each.by.group.empty() || !each.by.holders.empty()) {
      refusals.back()["holders"] = holders_of(each.by);
    }
  }
  return refusals;
}

OrderedJson devices_of(const History &history) {
  OrderedJson devices = OrderedJson::array();
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const History::Device &device = history.devices()[i];
    devices.push_back({{"dev", i},
                       {"name", device.name},
                       {"total", device.total},
                       {"limit", device.limit},
                       {"limit_asked", device.limit_asked},
                       {"later_limit", device.later_limit != 0 ? OrderedJson(device.later_limit) : OrderedJson()},
                       {"peak_bytes", device.peak.bytes},
                       {"peak_seq", device.peak.seq},
                       {"peak_ts", device.peak.ts_ns},
                       {"reserved_peak_bytes", device.reserved_peak.bytes},
                       {"reserved_peak_seq", device.reserved_peak.seq},
                       {"allocs", device.allocs},
                       {"frees", device.frees},
                       {"waits", device.waits},
                       {"waited_ns", device.waited_ns},
                       {"groups", groups_of(device)},
                       {"refusals", refusals_of(history, device)}});
  }
  return devices;
}

// Each stack that has blocks left, and each group whose blocks have none, the largest first.
OrderedJson leaks_of(const std::vector<Report> &reports) {
  OrderedJson leaks = OrderedJson::array();
  for (const Report &report : reports) {
    StackTable &stacks = report.history.stacks();
    for (std::size_t i = 0; i < report.history.devices().size(); ++i) {
      for (const Leak &leak : leaks_of(report.history, i)) {
        const std::vector<StackFrame> stack = stacks.frames(leak.stack);
        leaks.push_back({{"bytes", leak.group.bytes},
                         {"count", leak.group.count},
                         {"stack", places_of(stack)},
                         {"frames", frames_of(stack)},
                         {"group", leak.name},
                         {"memory", leak.is_host ? "host" : "device"},
                         {"dev", i},
                         {"log", report.log}});
      }
    }
  }
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const OrderedJson &a, const OrderedJson &b) { return a["bytes"] > b["bytes"]; });
  return leaks;
}

}  // namespace

std::string report_json(const std::vector<Report> &reports) {
  OrderedJson logs = OrderedJson::array();
  History::Moment peak;
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t failures = 0;
  for (const Report &report : reports) {
    const History &history = report.history;
    const History::Device *busiest = history.busiest();
    if (busiest != nullptr && busiest->peak.bytes > peak.bytes) {
      peak = busiest->peak;
    }
    allocs += history.allocs();
    frees += history.frees();
    failures += history.refusals() + history.failed_allocs();
    logs.push_back({{"log", report.log},
                    {"program", history.program()},
                    {"pid", history.pid()},
                    {"ended", history.has_ended()},
                    {"cut_off", history.was_cut_off()},
                    {"duration_ns", history.last_ts_ns()},
                    {"dropped", history.dropped()},
                    {"devices", devices_of(history)}});
  }
  const OrderedJson document = {{"schema", "ration.report/1"},
                                {"peak_bytes", peak.bytes},
                                {"peak_seq", peak.seq},
                                {"allocs", allocs},
                                {"frees", frees},
                                {"failures", failures},
                                {"leaks", leaks_of(reports)},
                                {"logs", std::move(logs)}};
  return document.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace ration::logs

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/base/program_name.h"
#include "events/event.h"
#include "logs/history/limit_need.h"
#include "logs/output/json_or_null.h"
#include "logs/report/caveats.h"
#include "logs/report/report.h"
#include "logs/report/unknown_functions.h"

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

// The frames of a stack as texts, for people to read.
OrderedJson places_of(const std::vector<StackFrame> &frames) {
  OrderedJson all = OrderedJson::array();
  for (const StackFrame &each : frames) {
    all.push_back(place_of(each));
  }
  return all;
}

OrderedJson callers_of(const History::Device &device) {
  OrderedJson callers = OrderedJson::array();
  for (const auto &[name, figures] : device.figures()) {
    callers.push_back({{"caller", name},
                       {"requested_bytes", figures.total.bytes},
                       {"allocs", figures.total.count},
                       {"at_peak_bytes", figures.peak.bytes},
                       {"at_peak_blocks", figures.peak.count},
                       {"live_bytes", figures.left.bytes},
                       {"live_blocks", figures.left.count},
                       {"live_oldest_ns", figures.left.oldest_ns}});
  }
  return callers;
}

OrderedJson holders_of(const History::RefusedBy &by) {
  OrderedJson holders = OrderedJson::array();
  for (const History::RefusedBy::Holder &each : by.holders) {
    holders.push_back({{"pid", each.pid},
                       {"program", cli::program_name(each.program)},
                       {"reserved_bytes", each.reserved},
                       {"guarantee", each.guarantee}});
  }
  if (by.outside != 0) {
    holders.push_back(
        {{"pid", nullptr}, {"program", events::kOutside}, {"reserved_bytes", by.outside}, {"guarantee", 0}});
  }
  return holders;
}

// The groups that held most at the time of the refusal.
OrderedJson held_of(const History::Refusal &refusal) {
  OrderedJson held = OrderedJson::array();
  for (const auto &[name, group] : refusal.held) {
    held.push_back({{"caller", name}, {"live_bytes", group.bytes}, {"live_blocks", group.count}});
  }
  return held;
}

OrderedJson growing_of(const History::Device &device) {
  OrderedJson growing = OrderedJson::array();
  for (const History::Growing &each : device.growing) {
    growing.push_back({{"caller", each.name},
                       {"from_bytes", each.rise.from},
                       {"to_bytes", each.rise.to},
                       {"oldest_ns", each.oldest_ns}});
  }
  return growing;
}

OrderedJson refusals_of(const History &history, const History::Device &device) {
  OrderedJson refusals = OrderedJson::array();
  for (const History::Refusal &each : device.refusals) {
    refusals.push_back({{"api", each.api},
                        {"reason", each.reason},
                        {"refusals", each.count},
                        {"first_seq", each.first.seq},
                        {"first_ts", each.first.ts_ns},
                        {"largest_refused_bytes", each.largest.bytes},
                        {"largest_seq", each.largest.seq},
                        {"largest_ts", each.largest.ts_ns},
                        {"lacking_bytes", or_null(each.lacking != 0, each.lacking)},
                        {"held", held_of(each)},
                        {"used_bytes", each.used},
                        {"limit", each.limit},
                        {"largest_free_bytes", each.largest_free},
                        {"device_free_bytes", or_null(each.device_free)},
                        {"stack", places_of(history.stacks().frames(each.stack))},
                        {"remedy", remedy(each)}});
    if (!each.by.group.empty()) {
      refusals.back().update(
          {{"group", each.by.group}, {"group_limit", each.by.limit}, {"group_claimed_bytes", each.by.claimed}});
    }
    if (!each.by.group.empty() || !each.by.holders.empty()) {
      refusals.back()["holders"] = holders_of(each.by);
    }
  }
  return refusals;
}

// The files whose functions have no names, and why.
OrderedJson unnamed_of(const History &history) {
  OrderedJson unnamed = OrderedJson::array();
  for (const auto &[path, why] : history.stacks().unnamed()) {
    unnamed.push_back({{"path", path}, {"reason", why}});
  }
  return unnamed;
}

OrderedJson devices_of(const History &history) {
  OrderedJson devices = OrderedJson::array();
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const History::Device &device = history.devices()[i];
    const bool is_later = device.later_limit != 0;
    devices.push_back({{"dev", i},
                       {"name", device.name},
                       {"total_bytes", device.total},
                       {"limit", or_null(device.limit_asked || is_later, is_later ? device.later_limit : device.limit)},
                       {"limit_at_start", or_null(device.limit_asked, device.limit)},
                       {"limit_set_later", is_later},
                       {"peak_bytes", or_null(history.knows_peak(), device.peak.bytes)},
                       {"least_peak_bytes", device.peak.bytes},
                       {"peak_seq", device.peak.seq},
                       {"peak_ts", device.peak.ts_ns},
                       {"reserved_peak_bytes", device.reserved_peak.bytes},
                       {"reserved_peak_seq", device.reserved_peak.seq},
                       {"allocs", device.allocs},
                       {"frees", device.frees},
                       {"waits", device.waits},
                       {"waited_ns", device.waited_ns},
                       {"growing", growing_of(device)},
                       {"callers", callers_of(device)},
                       {"refused_requests", refusals_of(history, device)}});
  }
  return devices;
}

// One entry for each stack with blocks never freed, and for each group of such blocks without a stack; the largest
// first.
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
                         {"caller", leak.name},
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

std::string text_of(const OrderedJson &document) {
  return document.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::string leaks_json(const std::vector<Report> &reports) {
  OrderedJson logs = OrderedJson::array();
  for (const Report &report : reports) {
    logs.push_back({{"log", report.log},
                    {"ended", report.history.has_ended()},
                    {"cut_off", report.history.was_cut_off()},
                    {"dropped", report.history.dropped()}});
  }
  return text_of({{"schema", "ration.leaks/1"}, {"leaks", leaks_of(reports)}, {"logs", std::move(logs)}});
}

std::string report_json(const std::vector<Report> &reports) {
  OrderedJson logs = OrderedJson::array();
  History::Moment peak;
  bool is_known = true;
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t refusals = 0;
  std::uint64_t failed_allocs = 0;
  for (const Report &report : reports) {
    const History &history = report.history;
    const History::Device *busiest = history.busiest();
    if (busiest != nullptr && busiest->peak.bytes > peak.bytes) {
      peak = busiest->peak;
    }
    is_known = is_known && history.knows_peak();
    allocs += history.allocs();
    frees += history.frees();
    refusals += history.refusals();
    failed_allocs += history.failed_allocs();
    logs.push_back({{"log", report.log},
                    {"program", cli::program_name(history.program())},
                    {"exe", history.program()},
                    {"pid", history.pid()},
                    {"ended", history.has_ended()},
                    {"ended_cleanly", history.has_ended_cleanly()},
                    {"cut_off", history.was_cut_off()},
                    {"duration_ns", history.last_ts_ns()},
                    {"dropped", history.dropped()},
                    {"peak_is_exact", history.has_exact_peak()},
                    {"has_stacks", history.has_stacks()},
                    {"driver", history.driver_version()},
                    {"version", history.ration_version()},
                    {"unknown_names", history.asked().unknown_names},
                    {"unknown", history.asked().unknown},
                    {"unknown_versions", history.asked().unknown_versions},
                    {"newer", history.asked().newer},
                    {"may_take_memory", unknown_that_take_memory(history.asked())},
                    {"devices", devices_of(history)}});
    logs.back()["unnamed"] = unnamed_of(history);  // by now, all names that are shown have been requested
  }
  const OrderedJson document = {{"schema", "ration.report/1"},
                                {"peak_bytes", or_null(is_known, peak.bytes)},
                                {"least_peak_bytes", peak.bytes},
                                {"peak_seq", peak.seq},
                                {"allocs", allocs},
                                {"frees", frees},
                                {"failures", refusals + failed_allocs},
                                {"refusals", refusals},
                                {"failed_allocs", failed_allocs},
                                {"leaks", leaks_of(reports)},
                                {"logs", std::move(logs)}};
  return text_of(document);
}

}  // namespace ration::logs

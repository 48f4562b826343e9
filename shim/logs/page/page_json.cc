#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/saturating.h"
#include "logs/history/limit_need.h"
#include "logs/page/flame.h"
#include "logs/page/page_json.h"
#include "logs/report/caveats.h"
#include "logs/report/refusal_text.h"

namespace ration::logs {
namespace {

using Json = nlohmann::ordered_json;
using Why = PageMoment::Why;

constexpr std::size_t kPoints = 40'000;   // of all series
constexpr std::size_t kSpans = 220'000;   // for all moments together
constexpr std::size_t kMostHolders = 40;  // names shown for a moment
constexpr std::size_t kCallers = 1'000;   // of a device

const char *word(Why why) {
  switch (why) {
    case Why::peak:
      return "peak";
    case Why::refusal:
      return "refusal";
    case Why::end:
      return "end";
    case Why::sample:
      break;
  }
  return "sample";
}

// JavaScript's numbers are exact up to 2^53 only.
std::string hexadecimal(std::uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Json columns_of(const Series &series) {
  Json times = Json::array();
  Json used = Json::array();
  Json reserved = Json::array();
  std::uint64_t before = 0;
  for (const Series::Point &point : series.points()) {
    times.push_back(point.ts_ns - before);  // differences are shorter than times
    used.push_back(point.used);
    reserved.push_back(point.reserved);
    before = point.ts_ns;
  }
  return {{"times", std::move(times)}, {"used", std::move(used)}, {"reserved", std::move(reserved)}};
}

Json figures_of(const SiteFigures &figures) {
  return {figures.peak.bytes,  figures.peak.count, figures.total.bytes,
          figures.total.count, figures.left.bytes, figures.left.count};
}

// One row per caller, the largest first, as many as are shown: name, figures, and the age of the oldest block never
// freed.
Json callers_of(const History::Device &device, std::size_t &left_out) {
  auto rows = device.figures();
  std::stable_sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    const auto key = [](const SiteFigures &each) {
      return std::tuple(each.left.bytes + each.peak.bytes, each.total.bytes);
    };
    return key(a.second) > key(b.second);
  });
  left_out = minus_or_zero(rows.size(), kCallers);
  rows.resize(rows.size() - left_out);
  Json callers = Json::array();
  for (const auto &[name, figures] : rows) {
    callers.push_back({name, figures_of(figures), figures.left.oldest_ns});
  }
  return callers;
}

// The callers that hold most at a moment, followed by the count and the bytes of the others.
Json holders_of(const MapMoment &map, const std::vector<Site> &sites) {
  std::map<std::uint32_t, std::uint64_t> by_caller;
  for (const auto &[site, bytes] : map.by_site) {
    by_caller[sites[site].caller] += bytes;
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
  for (const auto &[caller, bytes] : by_caller) {
    sorted.emplace_back(bytes, caller);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  Json holders = Json::array();
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i < kMostHolders) {
      holders.push_back({sorted[i].second, sorted[i].first});
    } else {
      others += sorted[i].first;
    }
  }
  return {std::move(holders), minus_or_zero(sorted.size(), kMostHolders), others};
}

Json map_of(const PageMoment &moment, const std::vector<Site> &sites) {
  Json areas = Json::array();
  for (const MapMoment::Area &area : moment.map.areas) {
    areas.push_back({area.slab, hexadecimal(area.address), area.bytes});
  }
  // A flat list, since there are many spans: area, offset, extent, bytes, count, caller, since.
  Json spans = Json::array();
  for (const MapMoment::Span &span : moment.map.spans) {
    for (const std::uint64_t value : {std::uint64_t{span.area}, span.offset, span.extent, span.bytes, span.count,
                                      std::uint64_t{sites[span.site].caller}, span.since_ns}) {
      spans.push_back(value);
    }
  }
  return {{"why", word(moment.why)},
          {"seq", moment.seq},
          {"ts", moment.ts_ns},
          {"used", moment.used},
          {"reserved", moment.reserved},
          {"held", holders_of(moment.map, sites)},
          {"areas", std::move(areas)},
          {"spans", std::move(spans)},
          {"blocks", moment.map.blocks},
          {"granules", moment.map.granules},
          {"granule_bytes", moment.map.granule_bytes},
          {"left_out_areas", moment.map.left_out_areas},
          {"left_out_blocks", moment.map.left_out_blocks}};
}

Json refusals_of_page(const PageDevice &device) {
  Json refusals = Json::array();
  for (const PageRefusal &each : device.refusals) {
    refusals.push_back({each.seq, each.ts_ns, each.requested, each.used, each.limit, each.largest_free,
                        each.device_free, each.api, each.reason, each.is_repeat ? 1 : 0});
  }
  return refusals;
}

// The groups that held most at the time of the refusal.
Json held_then(const History::Refusal &refusal) {
  Json held = Json::array();
  for (const auto &[name, group] : refusal.held) {
    held.push_back({name, group.bytes});
  }
  return held;
}

Json growing_of_page(const History::Device &device) {
  Json growing = Json::array();
  for (const History::Growing &each : device.growing) {
    growing.push_back({each.name, each.rise.from, each.rise.to, each.oldest_ns});
  }
  return growing;
}

// The memory that each of the top callers, and the others together, held at each time.
Json stack_of(const PageDevice &device) {
  Json times = Json::array();
  std::vector<Json> columns(device.top.size() + 1, Json::array());
  std::uint64_t before = 0;
  for (const auto &[ts_ns, bytes] : device.stack.points()) {
    times.push_back(ts_ns - before);
    for (std::size_t i = 0; i < device.top.size(); ++i) {
      columns[i].push_back(bytes[i]);
    }
    columns.back().push_back(bytes.back());
    before = ts_ns;
  }
  return {{"callers", device.top}, {"times", std::move(times)}, {"bytes", std::move(columns)}};
}

// One entry for each function and reason, with what would have helped.
Json remedies_of(const History::Device &device) {
  Json remedies = Json::array();
  for (const History::Refusal &each : device.refusals) {
    remedies.push_back({{"api", each.api},
                        {"reason", reason_words(each.reason)},
                        {"count", each.count},
                        {"first_seq", each.first.seq},
                        {"largest_request", each.largest.bytes},
                        {"largest_ts", each.largest.ts_ns},
                        {"largest_seq", each.largest.seq},
                        {"lack", lack_words(each)},
                        {"used", each.used},
                        {"held", held_then(each)},
                        {"holders", holder_lines(each.by)},
                        {"remedy", remedy(each)}});
  }
  return remedies;
}

Json flame_json(const Flame &flame) {
  Json nodes = Json::array();
  for (const FlameNode &node : flame.nodes) {
    Json row = {node.depth, node.place.name, node.place.library, node.place.file};
    for (const Json &figure : figures_of(node.figures)) {
      row.push_back(figure);
    }
    nodes.push_back(std::move(row));
  }
  return nodes;
}

Json device_json(const PageLog &log, std::size_t ordinal, std::size_t points, bool with_samples) {
  const History::Device &history = log.history.devices()[ordinal];
  const PageDevice &device = log.devices[ordinal];
  const std::vector<Site> &sites = log.sites.all();
  Series series = device.series;
  series.reduce(points);
  std::size_t left_out_callers = 0;
  Json callers = callers_of(history, left_out_callers);
  const Flame flame = flame_of(sites, device.sites);
  Json moments = Json::array();
  std::size_t left_out_moments = 0;
  for (const PageMoment &moment : device.moments) {
    if (moment.why != Why::sample || with_samples) {
      moments.push_back(map_of(moment, sites));
    } else {
      ++left_out_moments;
    }
  }
  return {{"dev", ordinal},
          {"name", history.name},
          {"total", history.total},
          {"limit", history.limit},
          {"limit_asked", history.limit_asked},
          {"group_limit", history.group_limit},
          {"peak_is_exact", log.history.has_exact_peak()},
          {"peak_bytes", history.peak.bytes},
          {"peak_seq", history.peak.seq},
          {"peak_ts", history.peak.ts_ns},
          {"reserved_peak_bytes", history.reserved_peak.bytes},
          {"allocs", history.allocs},
          {"frees", history.frees},
          {"left_bytes", history.live_bytes},
          {"left_count", history.live_count()},
          {"series", columns_of(series)},
          {"stack", stack_of(device)},
          {"growing", growing_of_page(history)},
          {"refusals", refusals_of_page(device)},
          {"remedies", remedies_of(history)},
          {"moments", std::move(moments)},
          {"callers", std::move(callers)},
          {"flame", flame_json(flame)},
          {"left_out",
           {{"points", series.left_out()},
            {"refusals", device.left_out_refusals},
            {"moments", left_out_moments},
            {"callers", left_out_callers},
            {"frames", flame.left_out}}}};
}

bool is_used(const History::Device &device) {
  return !device.in_all.empty() || !device.refusals.empty() || device.reserved_peak.bytes != 0;
}

}  // namespace

std::string page_json(const std::vector<PageLog> &logs, const Names &names) {
  std::size_t devices = 0;
  std::size_t spans = 0;
  std::uint64_t start = std::numeric_limits<std::uint64_t>::max();
  for (const PageLog &log : logs) {
    start = std::min(start, log.start_unix_ns);
    for (std::size_t i = 0; i < log.devices.size(); ++i) {
      devices += is_used(log.history.devices()[i]) ? 1 : 0;
      for (const PageMoment &moment : log.devices[i].moments) {
        spans += moment.map.spans.size();
      }
    }
  }
  Json all = Json::array();
  for (const PageLog &log : logs) {
    Json of_log = Json::array();
    for (std::size_t i = 0; i < log.devices.size(); ++i) {
      if (is_used(log.history.devices()[i])) {
        of_log.push_back(device_json(log, i, kPoints / std::max<std::size_t>(devices, 1), spans <= kSpans));
      }
    }
    all.push_back({{"log", log.path},
                   {"program", log.history.program()},
                   {"pid", log.history.pid()},
                   {"ended", log.history.has_ended()},
                   {"ended_cleanly", log.history.has_ended_cleanly()},
                   {"cut_off", log.history.was_cut_off()},
                   {"is_whole", log.history.is_whole()},
                   {"losses", caveat_of_losses(log.history)},
                   {"notes", caveats_of_names(log.history)},
                   {"start_ns", log.start_unix_ns - start},
                   {"duration_ns", log.history.last_ts_ns()},
                   {"failed_allocs", log.history.failed_allocs()},
                   {"has_stacks", log.sites.has_stacks()},
                   {"devices", std::move(of_log)}});
  }
  const Json document = {{"schema", "ration.page/1"},
                         {"version", RATION_VERSION},
                         {"start_unix_ms", start / 1'000'000},
                         {"names", names.all()},
                         {"logs", std::move(all)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ration::logs

#include <nlohmann/json.hpp>

#include "logs/output/json_or_null.h"

#include "logs/diff/log_difference.h"

namespace ration::logs {
namespace {

using DiffJson = nlohmann::ordered_json;

DiffJson figures_json(const BothFigures &figures) {
  return {{"before", figures.before}, {"after", figures.after}, {"change", figures.change()}};
}

// The value is null if it is unknown.
DiffJson peak_json(const BothFigures &peak, const LogDifference &of) {
  return {{"before", or_null(of.knows_peak_before, peak.before)},
          {"after", or_null(of.knows_peak_after, peak.after)},
          {"change", or_null(of.knows_peak_before && of.knows_peak_after, peak.change())}};
}

DiffJson callers_json(const DeviceDifference &device) {
  DiffJson callers = DiffJson::array();
  for (const CallerDifference &each : device.callers) {
    callers.push_back({{"name", each.name},
                       {"standing", each.is_new    ? "new"
                                    : each.is_gone ? "gone"
                                                   : "both"},
                       {"peak_bytes", figures_json(each.peak)},
                       {"requested_bytes", figures_json(each.requested)},
                       {"live_bytes", figures_json(each.live)},
                       {"allocs", figures_json(each.allocs)}});
  }
  return callers;
}

}  // namespace

std::string difference_json(const LogDifference &difference, const std::string &by,
                            const std::optional<std::vector<std::string>> &reasons) {
  DiffJson devices = DiffJson::array();
  for (const DeviceDifference &each : difference.devices) {
    devices.push_back({{"dev", each.ordinal},
                       {"peak_bytes", peak_json(each.peak, difference)},
                       {"reserved_peak_bytes", figures_json(each.reserved_peak)},
                       {"allocs", figures_json(each.allocs)},
                       {"frees", figures_json(each.frees)},
                       {"refusals", figures_json(each.refusals)},
                       {"live_blocks", figures_json(each.live_blocks)},
                       {"live_bytes", figures_json(each.live_bytes)},
                       {"callers", callers_json(each)}});
  }
  const DiffJson document = {{"schema", "ration.diff/1"},
                             {"before", difference.before},
                             {"after", difference.after},
                             {"by", by},
                             {"fails", or_null(reasons.has_value(), reasons && !reasons->empty())},
                             {"reasons", reasons.value_or(std::vector<std::string>())},
                             {"failed_allocs", figures_json(difference.failed_allocs)},
                             {"dropped", figures_json(difference.dropped)},
                             {"ended", {{"before", difference.before_ended}, {"after", difference.after_ended}}},
                             {"cut_off", {{"before", difference.before_cut_off}, {"after", difference.after_cut_off}}},
                             {"devices", std::move(devices)}};
  return document.dump(2, ' ', false, DiffJson::error_handler_t::replace);
}

}  // namespace ration::logs

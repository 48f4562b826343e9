#include <nlohmann/json.hpp>

#include "logs/diff/log_difference.h"

namespace ration::logs {
namespace {

using DiffJson = nlohmann::ordered_json;

DiffJson figures_json(const BothFigures &figures) {
  return {{"before", figures.before}, {"after", figures.after}, {"change", figures.change()}};
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

std::string difference_json(const LogDifference &difference, const std::string &by, std::optional<bool> exceeds) {
  DiffJson devices = DiffJson::array();
  for (const DeviceDifference &each : difference.devices) {
    devices.push_back({{"dev", each.ordinal},
                       {"peak_bytes", figures_json(each.peak)},
                       {"reserved_peak_bytes", figures_json(each.reserved_peak)},
                       {"allocs", figures_json(each.allocs)},
                       {"frees", figures_json(each.frees)},
                       {"refusals", figures_json(each.refusals)},
                       {"leaks", figures_json(each.leaks)},
                       {"leaked_bytes", figures_json(each.leaked_bytes)},
                       {"callers", callers_json(each)}});
  }
  const DiffJson document = {{"schema", "ration.diff/1"},
                             {"before", difference.before},
                             {"after", difference.after},
                             {"by", by},
                             {"fails", exceeds ? DiffJson(*exceeds) : DiffJson()},
                             {"failed_allocs", figures_json(difference.failed_allocs)},
                             {"dropped", figures_json(difference.dropped)},
                             {"ended", {{"before", difference.before_ended}, {"after", difference.after_ended}}},
                             {"cut_off", {{"before", difference.before_cut_off}, {"after", difference.after_cut_off}}},
                             {"devices", std::move(devices)}};
  return document.dump(2, ' ', false, DiffJson::error_handler_t::replace);
}

}  // namespace ration::logs

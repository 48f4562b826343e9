#include <nlohmann/json.hpp>

#include "logs/output/json_or_null.h"

#include "logs/diff/log_difference.h"

namespace ration::logs {
namespace {

using DiffJson = nlohmann::ordered_json;

struct Figure {
  const char *key;
  BothFigures of;
  bool knows_before = true, knows_after = true;  // an unknown figure is null
};

// Adds the objects `before`, `after` and `change`, which have the same keys.
void add_sides(DiffJson &object, const std::vector<Figure> &figures) {
  for (const Figure &each : figures) {
    object["before"][each.key] = or_null(each.knows_before, each.of.before);
    object["after"][each.key] = or_null(each.knows_after, each.of.after);
    object["change"][each.key] = or_null(each.knows_before && each.knows_after, each.of.change());
  }
}

DiffJson callers_json(const DeviceDifference &device, const LogDifference &of) {
  DiffJson callers = DiffJson::array();
  for (const CallerDifference &each : device.callers) {
    callers.push_back({{"caller", each.name}, {"occurs", of.occurrence_of(each)}});
    add_sides(callers.back(), {{"at_peak_bytes", each.peak},
                               {"requested_bytes", each.requested},
                               {"live_bytes", each.live},
                               {"allocs", each.allocs}});
  }
  return callers;
}

DiffJson side_json(const LogDifference::Side &side) {
  DiffJson object = {{"logs", DiffJson::array()}, {"ended", side.has_ended}, {"cut_off", side.was_cut_off}};
  for (const std::string &log : side.logs) {
    object["logs"].push_back({{"log", log}});
  }
  return object;
}

}  // namespace

std::string difference_json(const LogDifference &difference, const std::string &by,
                            const std::optional<std::vector<std::string>> &reasons) {
  DiffJson document = {{"schema", "ration.diff/1"},
                       {"by", by},
                       {"holds", or_null(reasons.has_value(), reasons && reasons->empty())},
                       {"reasons", reasons.value_or(std::vector<std::string>())},
                       {"before", side_json(difference.before)},
                       {"after", side_json(difference.after)}};
  add_sides(document, {{"failed_allocs", difference.failed_allocs}, {"dropped", difference.dropped}});
  document["devices"] = DiffJson::array();
  for (const DeviceDifference &each : difference.devices) {
    DiffJson device = {{"dev", each.ordinal}};
    add_sides(device, {{"peak_bytes", each.peak, difference.before.knows_peak, difference.after.knows_peak},
                       {"reserved_peak_bytes", each.reserved_peak},
                       {"allocs", each.allocs},
                       {"frees", each.frees},
                       {"refusals", each.refusals},
                       {"live_blocks", each.live_blocks},
                       {"live_bytes", each.live_bytes}});
    device["callers"] = callers_json(each, difference);
    document["devices"].push_back(std::move(device));
  }
  return document.dump(2, ' ', false, DiffJson::error_handler_t::replace);
}

}  // namespace ration::logs

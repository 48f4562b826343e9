#include "logs/diff/log_difference.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "config/values/size.h"

namespace ration::logs {
namespace {

using LogDevice = History::Device;

constexpr double kMostPercent = 1e6;

using Callers = std::map<std::string, CallerDifference>;

void add_callers(Callers &callers, const LogDevice &device, BothFigures::Side side) {
  for (const auto &[name, figures] : device.figures()) {
    CallerDifference &caller = callers[name];
    caller.requested.*side += figures.total.bytes;
    caller.allocs.*side += figures.total.count;
    caller.peak.*side += figures.peak.bytes;
    caller.live.*side += figures.left.bytes;
  }
}

std::vector<CallerDifference> sorted(const Callers &callers) {
  std::vector<CallerDifference> all;
  for (const auto &[name, caller] : callers) {
    all.push_back(caller);
    all.back().name = name;
    all.back().is_before = caller.allocs.before != 0;
    all.back().is_after = caller.allocs.after != 0;
  }
  std::stable_sort(all.begin(), all.end(), [](const CallerDifference &a, const CallerDifference &b) {
    return a.largest() != b.largest() ? a.largest() > b.largest() : a.allocs.distance() > b.allocs.distance();
  });
  return all;
}

}  // namespace

// The largest difference in held bytes. If nothing changed there, the difference in the bytes requested in total.
std::uint64_t CallerDifference::largest() const {
  const std::uint64_t held = std::max(peak.distance(), live.distance());
  return held != 0 ? held : requested.distance();
}

const char *LogDifference::occurrence_of(const CallerDifference &caller) const {
  if (caller.is_before == caller.is_after) {
    return "both";
  }
  return !(caller.is_after ? before : after).is_whole ? "unknown" : caller.is_after ? "new" : "gone";
}

LogDifference difference_of(const std::vector<History> &before, const std::vector<History> &after) {
  LogDifference difference;
  std::vector<Callers> callers;  // by device
  const auto add = [&](const History &history, BothFigures::Side side) {
    difference.failed_allocs.*side += history.failed_allocs();
    difference.dropped.*side += history.dropped();
    for (std::size_t i = 0; i < history.devices().size(); ++i) {
      const LogDevice &device = history.devices()[i];
      if (i == callers.size()) {
        difference.devices.emplace_back().ordinal = i;
        callers.emplace_back();
      }
      DeviceDifference &sum = difference.devices[i];
      sum.peak.*side += device.peak.bytes;
      sum.reserved_peak.*side += device.reserved_peak.bytes;
      sum.allocs.*side += device.allocs;
      sum.frees.*side += device.frees;
      sum.refusals.*side += device.refusal_count();
      sum.live_blocks.*side += device.live_count();
      sum.live_bytes.*side += device.live_bytes;
      add_callers(callers[i], device, side);
    }
  };
  const auto add_to = [&add](LogDifference::Side &sum, const std::vector<History> &logs, BothFigures::Side side) {
    for (const History &each : logs) {
      add(each, side);
      sum.has_ended = sum.has_ended && each.has_ended();
      sum.was_cut_off = sum.was_cut_off || each.was_cut_off();
      sum.knows_peak = sum.knows_peak && each.knows_peak();
      sum.has_exact_peak = sum.has_exact_peak && each.has_exact_peak();
      sum.is_whole = sum.is_whole && each.is_whole();
    }
  };
  add_to(difference.before, before, &BothFigures::before);
  add_to(difference.after, after, &BothFigures::after);
  for (std::size_t i = 0; i < callers.size(); ++i) {
    difference.devices[i].callers = sorted(callers[i]);
  }
  return difference;
}

bool Growth::is_exceeded_by(const BothFigures &peak) const {
  if (peak.after <= peak.before) {
    return false;
  }
  return share ? static_cast<double>(peak.distance()) > static_cast<double>(peak.before) * *share
               : peak.distance() > bytes;
}

std::variant<Growth, std::string> read_growth(const std::string &text) {
  Growth growth;
  if (text.ends_with('%')) {  // accepts 0% as well, and more than 100%
    const char *const end = text.data() + text.size() - (text.ends_with(" %") ? 2 : 1);
    double percent = 0;
    const auto [rest, error] = std::from_chars(text.data(), end, percent);
    if (error != std::errc() || rest != end || !std::isfinite(percent) || percent < 0 || percent > kMostPercent) {
      return "'" + text + "' is not a percentage";
    }
    growth.share = percent / 100;
    return growth;
  }
  const auto amount = config::parse_amount(text, "64MiB or 5%");
  if (const std::string *wrong = std::get_if<std::string>(&amount)) {
    return *wrong;
  }
  const auto &read = std::get<config::Size>(amount);
  constexpr std::uint64_t kParts = std::uint64_t{1} << 50;
  if (read.is_share()) {
    growth.share = static_cast<double>(read.bytes_of(kParts)) / static_cast<double>(kParts);
  } else {
    growth.bytes = read.bytes_of(0);
  }
  return growth;
}

}  // namespace ration::logs

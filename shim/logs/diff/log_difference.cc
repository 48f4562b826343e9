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

std::uint64_t refusals_on(const LogDevice &device) {
  std::uint64_t sum = 0;
  for (const History::Refusal &each : device.refusals) {
    sum += each.count;
  }
  return sum;
}

History::Group group_in(const History::Groups &groups, const std::string &name) {
  const auto found = groups.find(name);
  return found != groups.end() ? found->second : History::Group{};
}

std::vector<CallerDifference> callers_of(const LogDevice &before, const LogDevice &after) {
  std::map<std::string, CallerDifference> callers;
  const auto put = [&callers](const LogDevice &device, std::uint64_t BothFigures::*side) {
    for (const auto &[name, all] : device.in_all) {
      CallerDifference &caller = callers[name];
      caller.name = name;
      caller.requested.*side = all.bytes;
      caller.allocs.*side = all.count;
      caller.peak.*side = group_in(device.at_peak, name).bytes;
      caller.live.*side = group_in(device.live, name).bytes;
    }
  };
  put(before, &BothFigures::before);
  put(after, &BothFigures::after);
  std::vector<CallerDifference> sorted;
  for (auto &[name, caller] : callers) {
    caller.is_new = caller.allocs.before == 0;
    caller.is_gone = caller.allocs.after == 0;
    sorted.push_back(caller);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const CallerDifference &a, const CallerDifference &b) {
    return a.largest() != b.largest() ? a.largest() > b.largest() : a.allocs.distance() > b.allocs.distance();
  });
  return sorted;
}

}  // namespace

// Of what was held; what was asked for in all counts where nothing of that changed.
std::uint64_t CallerDifference::largest() const {
  const std::uint64_t held = std::max(peak.distance(), live.distance());
  return held != 0 ? held : requested.distance();
}

LogDifference difference_of(const History &before, const History &after) {
  LogDifference difference;
  difference.failed_allocs = {before.failed_allocs(), after.failed_allocs()};
  difference.dropped = {before.dropped(), after.dropped()};
  difference.before_ended = before.has_ended();
  difference.after_ended = after.has_ended();
  difference.before_cut_off = before.was_cut_off();
  difference.after_cut_off = after.was_cut_off();
  const std::size_t devices = std::max(before.devices().size(), after.devices().size());
  for (std::size_t i = 0; i < devices; ++i) {
    const LogDevice was = i < before.devices().size() ? before.devices()[i] : LogDevice{};
    const LogDevice is = i < after.devices().size() ? after.devices()[i] : LogDevice{};
    difference.devices.push_back({i,
                                  {was.peak.bytes, is.peak.bytes},
                                  {was.reserved_peak.bytes, is.reserved_peak.bytes},
                                  {was.allocs, is.allocs},
                                  {was.frees, is.frees},
                                  {refusals_on(was), refusals_on(is)},
                                  {was.live_count(), is.live_count()},
                                  {was.live_bytes, is.live_bytes},
                                  callers_of(was, is)});
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
  if (text.ends_with('%')) {  // also 0%, and more than all
    const char *const end = text.data() + text.size() - (text.ends_with(" %") ? 2 : 1);
    double percent = 0;
    const auto [rest, error] = std::from_chars(text.data(), end, percent);
    if (error != std::errc() || rest != end || !std::isfinite(percent) || percent < 0 || percent > kMostPercent) {
      return "'" + text + "' is no percentage";
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

// Matches the items of limits with the devices, once these are known. Layer: config.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "config/options.h"
#include "config/settings.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

constexpr std::size_t kMostProblems = 8;  // of one limit: a list for many machines names devices that are not here

enum class Doubt { kNone, kStrictest };

std::string error_in_item(const LimitItem &item, const std::vector<DeviceIdentity> &devices, Doubt &doubt) {
  const auto fitting = std::count_if(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); });
  const auto unnamed =
      std::count_if(devices.begin(), devices.end(), [](const auto &each) { return each.uuid.empty(); });
  const std::string name = quoted(item.name);
  if (fitting == 0) {
    return "this process has no device " + name + ", so that limit holds nowhere";
  }
  if (item.uuid_prefix.empty()) {
    return {};
  }
  if (unnamed > 0) {
    return "the driver reports no UUIDs, so " + name + " holds on every device without one; name devices by ordinal";
  }
  if (fitting > 1) {
    doubt = Doubt::kStrictest;
    return name + " fits " + std::to_string(fitting) + " devices; write more of the UUID";
  }
  return {};
}

// The first two items by which one setting names a device, by ordinal and by UUID, with two different limits. Of two
// settings the smaller limit holds. One name with two limits is an error of its setting already, so each item is
// compared with the first of its setting only.
std::pair<const LimitItem *, const LimitItem *> contradiction(const LimitMap &limit, const DeviceIdentity &device) {
  std::unordered_map<std::string_view, const LimitItem *> first_of_setting;
  for (const LimitItem &item : limit) {
    if (item.name.empty() || !item.fits(device)) {
      continue;
    }
    const LimitItem &first = *first_of_setting.emplace(item.stated, &item).first->second;
    if (first.name != item.name && first.size.bytes_of(device.total_bytes) != item.size.bytes_of(device.total_bytes)) {
      return {&first, &item};
    }
  }
  return {nullptr, nullptr};
}

// Resolves the items of one limit; `in_doubt` is set where one of them is ambiguous.
void resolve(const LimitMap &limit, std::string_view key, const std::vector<DeviceIdentity> &devices, bool &in_doubt,
             std::vector<Problem> &problems) {
  std::size_t reported = 0;
  const auto report = [&](const LimitItem &item, std::string sentence, Doubt doubt) {
    in_doubt = in_doubt || doubt == Doubt::kStrictest;
    if (++reported > kMostProblems) {
      return;
    }
    const std::string_view instead = doubt == Doubt::kStrictest ? kStrictestHolds : std::string_view();
    problems.push_back(problem_at(key, item.stated, std::move(sentence), instead, false));
  };
  for (const LimitItem &item : limit) {
    Doubt doubt = Doubt::kNone;
    if (std::string wrong = error_in_item(item, devices, doubt); !wrong.empty()) {
      report(item, std::move(wrong), doubt);
    }
  }
  for (const DeviceIdentity &device : devices) {
    if (device.uuid.empty()) {
      continue;
    }
    if (const auto [one, other] = contradiction(limit, device); other != nullptr) {
      report(*other, quoted(one->name) + " and " + quoted(other->name) + " are one device with two limits",
             Doubt::kStrictest);
    }
  }
}

// A limit of 0 is never meant.
void report_reserves(const Settings &settings, const std::vector<DeviceIdentity> &devices,
                     std::vector<Problem> &problems) {
  std::vector<Size> reserves = settings.more_reserves;
  if (settings.reserve) {
    reserves.push_back(*settings.reserve);
  }
  std::size_t reported = 0;
  for (const DeviceIdentity &device : devices) {
    const auto takes_all = [&](const Size &size) { return size.bytes_of(device.total_bytes) >= device.total_bytes; };
    if (std::any_of(reserves.begin(), reserves.end(), takes_all) && ++reported <= kMostProblems) {
      const Origin *origin = settings.origin_of("reserve");
      problems.push_back(problem_at("reserve", origin != nullptr ? origin->written() : "reserve",
                                    "it leaves nothing of device " + std::to_string(device.ordinal) + ", which has " +
                                        show_bytes(device.total_bytes) + "; every allocation there is refused",
                                    {}, false));
    }
  }
}

}  // namespace

void Settings::resolve_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems) {
  resolve(limit, "limit", devices, limit_in_doubt, problems);
  resolve(stray_group_limit, "group_limit", devices, limit_in_doubt, problems);
  for (Group &group : groups) {
    constexpr std::string_view kKeys[] = {"group_tree", "container_limit", "group_limit"};  // by kind
    resolve(group.limit, kKeys[static_cast<std::size_t>(group.kind)], devices, group.in_doubt, problems);
  }
  report_reserves(*this, devices, problems);
}

}  // namespace ration::config

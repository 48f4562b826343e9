// Matches the items of limits with the devices, once these are known. Layer: config.
#include <algorithm>

#include "config/options.h"
#include "config/settings.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

enum class Doubt { kNone, kStrictest };

std::string error_in_item(const LimitItem &item, const std::vector<DeviceIdentity> &devices, Doubt &doubt) {
  const auto fitting = std::count_if(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); });
  const auto unnamed =
      std::count_if(devices.begin(), devices.end(), [](const auto &each) { return each.uuid.empty(); });
  const std::string name = quoted(item.name);
  if (fitting == 0) {
    return "device " + name + " is not visible to this process";
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

// Whether one setting names a device by ordinal and by UUID with two different limits. Of two settings the smaller
// limit holds.
bool contradict(const LimitItem &one, const LimitItem &other, const DeviceIdentity &device) {
  return !one.name.empty() && !other.name.empty() && one.name != other.name && one.stated == other.stated &&
         one.fits(device) && other.fits(device) &&
         one.size.bytes_of(device.total_bytes) != other.size.bytes_of(device.total_bytes);
}

// Resolves the items of one limit; `in_doubt` is set where one of them is ambiguous.
void resolve(const LimitMap &limit, std::string_view key, const std::vector<DeviceIdentity> &devices, bool &in_doubt,
             std::vector<Problem> &problems) {
  const auto report = [&](const LimitItem &item, std::string sentence, Doubt doubt) {
    in_doubt = in_doubt || doubt == Doubt::kStrictest;
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
    for (auto item = limit.begin(); item != limit.end() && !device.uuid.empty(); ++item) {
      const auto other =
          std::find_if(limit.begin(), item, [&](const LimitItem &each) { return contradict(each, *item, device); });
      if (other != item) {
        report(*item, quoted(other->name) + " and " + quoted(item->name) + " are one device with two limits",
               Doubt::kStrictest);
        break;
      }
    }
  }
}

}  // namespace

void Settings::resolve_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems) {
  resolve(limit, "limit", devices, limit_in_doubt, problems);
  resolve(stray_group_limit, "group_limit", devices, limit_in_doubt, problems);
  for (Group &group : groups) {
    resolve(group.limit, group.tree ? "group_tree" : "group_limit", devices, group.in_doubt, problems);
  }
}

}  // namespace ration::config

// Which item of a limit means no device, or several: known only once the devices are. Layer: config.
#include <algorithm>

#include "config/options.h"
#include "config/settings.h"
#include "config/wording.h"

namespace ration::config {

namespace {

enum class Doubt { kNone, kStrictest };

std::string complain_of_item(const LimitItem &item, const std::vector<DeviceIdentity> &devices, Doubt &doubt) {
  const auto fitting = std::count_if(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); });
  const auto unnamed =
      std::count_if(devices.begin(), devices.end(), [](const auto &each) { return each.uuid.empty(); });
  const std::string name = quoted(item.name);
  if (fitting == 0) {
    return "device " + name + " is none of those that this process sees";
  }
  if (item.uuid_prefix.empty()) {
    return {};
  }
  if (unnamed > 0) {
    return "the driver tells no UUIDs, so " + name + " holds on every device without one; name devices by ordinal";
  }
  if (fitting > 1) {
    doubt = Doubt::kStrictest;
    return name + " fits " + std::to_string(fitting) + " devices; write more of the UUID";
  }
  return {};
}

// One device that is named both by ordinal and by UUID, with two different limits. An item for every device is no such
// name: what the environment gives beside it is another limit.
std::string complain_of_device(const LimitMap &limit, const DeviceIdentity &device) {
  const LimitItem *first = nullptr;
  for (const LimitItem &item : limit) {
    if (item.name.empty() || !item.fits(device)) {
      continue;
    }
    if (first == nullptr) {
      first = &item;
    } else if (first->name != item.name &&
               first->size.bytes_of(device.total_bytes) != item.size.bytes_of(device.total_bytes)) {
      return quoted(first->name) + " and " + quoted(item.name) + " are one device with two limits";
    }
  }
  return {};
}

// The items of one variable, and whose limit is in doubt with them.
void meet(const LimitMap &limit, std::string_view key, const Settings &settings,
          const std::vector<DeviceIdentity> &devices, bool &in_doubt, std::vector<Problem> &problems) {
  const auto origin = std::find_if(settings.origins.begin(), settings.origins.end(),
                                   [&](const Settings::Origin &each) { return each.key == key; });
  const std::string value = origin == settings.origins.end() ? std::string() : origin->value;
  const auto report = [&](std::string sentence, Doubt doubt) {
    in_doubt = in_doubt || doubt == Doubt::kStrictest;
    const std::string_view instead = doubt == Doubt::kStrictest ? kStrictestHolds : std::string_view();
    problems.push_back(problem_of(key, option_of_key(key)->variable, value, std::move(sentence), instead, false));
  };
  for (const LimitItem &item : limit) {
    Doubt doubt = Doubt::kNone;
    if (std::string wrong = complain_of_item(item, devices, doubt); !wrong.empty()) {
      report(std::move(wrong), doubt);
    }
  }
  for (const DeviceIdentity &device : devices) {
    std::string wrong = device.uuid.empty() ? std::string() : complain_of_device(limit, device);
    if (!wrong.empty()) {
      report(std::move(wrong), Doubt::kStrictest);
    }
  }
}

}  // namespace

void Settings::meet_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems) {
  meet(limit, "limit", *this, devices, limit_in_doubt, problems);
  meet(stray_group_limit, "group_limit", *this, devices, limit_in_doubt, problems);
  for (Group &group : groups) {
    meet(group.limit, group.tree ? "group_tree" : "group_limit", *this, devices, group.in_doubt, problems);
  }
}

}  // namespace ration::config

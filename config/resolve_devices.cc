// Matches the items of limits with the devices, once the devices are known. Layer: config.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "config/options.h"
#include "config/settings.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

constexpr std::size_t kMostProblems = 8;  // for one limit: a list for many machines names devices that this one lacks
constexpr std::size_t kMostNamed = 16;
constexpr std::size_t kLeastDigits = 12;  // digits of a UUID, including its "GPU-"

constexpr std::string_view kHoldsNowhere = "; that limit has no effect";

using Devices = std::vector<DeviceIdentity>;

// The shortest beginning of the device's UUID that no other device shares, such as a limit may use.
std::string_view short_uuid(const DeviceIdentity &device, const Devices &devices) {
  std::size_t digits = kLeastDigits;
  for (const DeviceIdentity &other : devices) {
    if (&other != &device) {
      const auto [own, its] =
          std::mismatch(device.uuid.begin(), device.uuid.end(), other.uuid.begin(), other.uuid.end());
      digits = std::max(digits, static_cast<std::size_t>(own - device.uuid.begin()) + 1);
    }
  }
  return std::string_view(device.uuid).substr(0, digits);
}

// "a", "a and b", "a, b and c".
std::string enumerated(const std::vector<std::string> &words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

std::string more_than(std::size_t named) {
  return std::to_string(named - kMostNamed) + " more";
}

std::string names_of(const Devices &devices) {
  std::vector<std::string> names;
  for (const DeviceIdentity &device : devices) {
    if (names.size() == kMostNamed) {
      names.push_back(more_than(devices.size()));
      break;
    }
    const std::string_view uuid = short_uuid(device, devices);
    const std::string ordinal = std::to_string(device.ordinal);
    names.push_back(device.ordinal < 0 ? std::string(uuid)  // not numbered here
                    : uuid.empty()     ? ordinal
                                       : ordinal + " (" + std::string(uuid) + ")");
  }
  return enumerated(names);
}

// Names all absent devices of one setting in one sentence.
std::string error_in_absent(const std::vector<const LimitItem *> &absent, const Devices &devices) {
  std::vector<std::string> names;
  for (const LimitItem *item : absent) {
    if (names.size() == kMostNamed) {
      names.push_back(more_than(absent.size()));
      break;
    }
    names.push_back(in_quotes(item->name));
  }
  return (names.size() == 1 ? "there is no device " : "there are no devices ") + enumerated(names) +
         (devices.empty() ? ", and no other" : ", only " + names_of(devices));
}

void find_absent(const LimitMap &limit, const Devices &devices, std::vector<DeviceError> &errors) {
  std::vector<const LimitItem *> absent;
  for (const LimitItem &item : limit) {
    if (std::none_of(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); }) &&
        !item.name.empty()) {
      absent.push_back(&item);
    }
  }
  while (!absent.empty()) {
    const std::string &stated = absent.front()->stated;
    const auto rest = std::stable_partition(absent.begin(), absent.end(),
                                            [&](const LimitItem *item) { return item->stated == stated; });
    errors.push_back({DeviceError::Kind::kAbsent, error_in_absent({absent.begin(), rest}, devices), stated});
    absent.erase(absent.begin(), rest);
  }
}

void find_ambiguous(const LimitMap &limit, const Devices &devices, std::vector<DeviceError> &errors) {
  const bool are_named =
      std::none_of(devices.begin(), devices.end(), [](const auto &each) { return each.uuid.empty(); });
  for (const LimitItem &item : limit) {
    const auto fitting =
        std::count_if(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); });
    if (item.uuid_prefix.empty() || fitting == 0) {
      continue;
    }
    const std::string name = in_quotes(item.name);
    if (!are_named) {
      errors.push_back(
          {DeviceError::Kind::kNoUuids,
           "the driver reports no UUIDs, so " + name + " holds on every device without one; name devices by ordinal",
           item.stated});
    } else if (fitting > 1) {
      errors.push_back({DeviceError::Kind::kDoubtful,
                        name + " fits " + std::to_string(fitting) + " devices; write more of the UUID", item.stated});
    }
  }
}

// The first two items of one setting that name the same device differently (by ordinal and by UUID) and give it
// different limits. Limits of two settings do not contradict each other: the smaller applies. One name with two limits
// is already an error of its setting, so each item is compared only with the first item of its setting.
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

// Resolves the items of one limit; sets `in_doubt` if one of them is ambiguous.
void resolve(const LimitMap &limit, std::string_view key, const Devices &devices, bool &in_doubt,
             std::vector<Problem> &problems) {
  std::size_t reported = 0;
  for (DeviceError &error : errors_in_devices(limit, devices)) {
    in_doubt = in_doubt || error.kind == DeviceError::Kind::kDoubtful;
    if (++reported <= kMostProblems) {
      const std::string_view instead = error.kind == DeviceError::Kind::kDoubtful ? kStrictestHolds
                                       : error.kind == DeviceError::Kind::kAbsent ? kHoldsNowhere
                                                                                  : std::string_view();
      problems.push_back(problem_at(key, error.stated, std::move(error.sentence), instead, false));
    }
  }
}

// Reports reserves that leave nothing of a device: a limit of 0 is never meant.
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
      problems.push_back(problem_at("reserve", origin != nullptr ? origin->as_given() : "reserve",
                                    "it leaves no memory on device " + std::to_string(device.ordinal) + ", which has " +
                                        show_bytes(device.total_bytes) + "; every allocation there is refused",
                                    {}, false));
    }
  }
}

// Changes what is shown for sources (variables and others) whose limit applies to no device here, or not to all that it
// names.
void mark_absent(Settings &settings, const LimitMap &limit, const Devices &devices) {
  std::vector<DeviceError> errors;
  find_absent(limit, devices, errors);
  for (const DeviceError &error : errors) {
    const bool holds = std::any_of(limit.begin(), limit.end(), [&](const LimitItem &item) {
      return item.stated == error.stated &&
             (item.name.empty() ||
              std::any_of(devices.begin(), devices.end(), [&](const auto &each) { return item.fits(each); }));
    });
    for (ThirdPartyVariable &each : settings.third_party) {
      if (each.written() == error.stated && each.disposition == Disposition::kHonoured) {
        each.disposition = holds ? each.disposition : Disposition::kIgnored;
        each.reason = (holds ? each.reason + "; " : "") + error.sentence;
      }
    }
    for (Origin &each : settings.origins) {
      if (!holds && each.written() == error.stated) {
        each.instead = "none";
      }
    }
  }
}

}  // namespace

std::vector<DeviceError> errors_in_devices(const LimitMap &limit, const std::vector<DeviceIdentity> &devices) {
  std::vector<DeviceError> errors;
  find_ambiguous(limit, devices, errors);
  find_absent(limit, devices, errors);
  for (const DeviceIdentity &device : devices) {
    if (device.uuid.empty()) {
      continue;
    }
    if (const auto [one, other] = contradiction(limit, device); other != nullptr) {
      errors.push_back({DeviceError::Kind::kDoubtful,
                        in_quotes(one->name) + " and " + in_quotes(other->name) + " are one device with two limits",
                        other->stated});
    }
  }
  return errors;
}

void Settings::resolve_devices(const std::vector<DeviceIdentity> &devices, std::vector<Problem> &problems) {
  resolve(limit, "limit", devices, limit_in_doubt, problems);
  resolve(stray_group_limit, "group_limit", devices, limit_in_doubt, problems);
  for (Group &group : groups) {
    resolve(group.limit, group.key_of_limit(), devices, group.in_doubt, problems);
  }
  report_reserves(*this, devices, problems);
  if (!devices.empty()) {
    mark_absent(*this, limit, devices);
    mark_absent(*this, stray_group_limit, devices);
    for (const Group &group : groups) {
      mark_absent(*this, group.limit, devices);
    }
  }
}

}  // namespace ration::config

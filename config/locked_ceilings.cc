// Finds the requested limits that the locked limits of a system file reduce. Layer: config.
#include <algorithm>

#include "config/options.h"
#include "config/settings.h"

namespace ration::config {

namespace {

struct Ceiling {
  std::string written;  // Origin::as_given(), or written() of a third party's variable
  std::uint64_t bytes = 0;
  bool is_locked = false;
  bool is_reserve = false;
};

const Origin *origin_written(const Settings &settings, const std::string &written) {
  const auto found = std::find_if(settings.origins.begin(), settings.origins.end(),
                                  [&](const Origin &each) { return each.written() == written; });
  return found == settings.origins.end() ? nullptr : &*found;
}

std::vector<Ceiling> ceilings_on(const Settings &settings, const LimitMap &limit, const DeviceIdentity &device) {
  std::vector<Ceiling> ceilings;
  for (const LimitItem &item : limit) {
    if (item.fits(device)) {
      const Origin *origin = origin_written(settings, item.stated);  // nullptr: a third party's variable
      ceilings.push_back({origin == nullptr ? item.stated : origin->as_given(), item.size.bytes_of(device.total_bytes),
                          origin != nullptr && origin->locked, false});
    }
  }
  if (&limit != &settings.limit) {
    return ceilings;
  }
  for (const Origin &origin : settings.origins) {
    if (origin.key != "reserve") {
      continue;
    }
    const auto amount = parse_amount(origin.value, {});
    if (const Size *size = std::get_if<Size>(&amount)) {
      const std::uint64_t total = device.total_bytes;
      ceilings.push_back({origin.as_given(), total - std::min(total, size->bytes_of(total)), origin.locked, true});
    }
  }
  return ceilings;
}

}  // namespace

std::vector<Problem> Settings::cut_by_locks(const std::vector<DeviceIdentity> &devices) const {
  std::vector<Problem> cut;
  const auto look = [&](const LimitMap &map, std::string_view key, const DeviceIdentity &device) {
    const std::vector<Ceiling> ceilings = ceilings_on(*this, map, device);
    for (const Ceiling &asked : ceilings) {
      const Ceiling *least = nullptr;
      for (const Ceiling &each : ceilings) {
        const bool cuts = each.is_locked && each.bytes < asked.bytes && (each.is_reserve || !asked.is_reserve);
        least = cuts && (least == nullptr || each.bytes < least->bytes) ? &each : least;
      }
      const bool is_said = std::any_of(cut.begin(), cut.end(), [&](const Problem &each) {
        return each.key == key && each.written == asked.written;
      });
      if (!asked.is_locked && least != nullptr && !is_said) {
        cut.push_back(problem_at(key, asked.written,
                                 "asks for " + show_bytes(asked.bytes) + " of device " +
                                     (device.ordinal < 0 ? device.uuid : std::to_string(device.ordinal)) +
                                     ", and gets " + show_bytes(least->bytes) + ": " + least->written + " is locked",
                                 {}, false));
      }
    }
  };
  for (const DeviceIdentity &device : devices) {
    look(limit, "limit", device);
    for (const Group &group : groups) {
      look(group.limit, group.key_of_limit(), device);
    }
  }
  return cut;
}

}  // namespace ration::config

#include "config/settings.h"

#include <algorithm>

#include "config/groups.h"
#include "config/options.h"
#include "config/problem.h"
#include "config/wording.h"

namespace ration::config {

namespace {

constexpr std::string_view kPrefix = "RATION_";
constexpr std::uint64_t kLeastHeadroom = 512 * kMiB;
constexpr std::uint64_t kHeadroomPart = 50;  // of the device: 2 %

std::uint64_t three_quarters(std::uint64_t total) {
  return total / 4 * 3 + total % 4 * 3 / 4;
}

// The distinct values that a variable is given. More than one: execve lets a caller say a name twice; getenv's first
// holds.
std::vector<std::string_view> values_of(std::string_view variable, const char *const *environment) {
  std::vector<std::string_view> values;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.substr(0, variable.size()) == variable && entry.substr(variable.size(), 1) == "=") {
      const std::string_view value = entry.substr(variable.size() + 1);
      if (std::find(values.begin(), values.end(), value) == values.end()) {
        values.push_back(value);
      }
    }
  }
  return values;
}

// What is wrong with an option that limits, or with any other, and what holds instead.
void refuse(Settings &settings, const Option &option, std::string_view value, std::string sentence,
            std::vector<Problem> &problems) {
  std::string instead = "; until then the default holds (" + std::string(option.fallback) + ")";
  if (option.key == "charge_context") {
    settings.charge_context = true;  // the reading under which the program gets less
    instead = "; until then it is charged";
  } else if (option.effect != Effect::kComfort) {
    // Whose limit is in doubt where a group's is, settle_groups knows.
    settings.limit_in_doubt = settings.limit_in_doubt || !concerns_groups(option);
    instead = kStrictestHolds;
  }
  problems.push_back(problem_of(option.key, option.variable, value, std::move(sentence), instead, true));
}

void read_option(Settings &settings, const Option &option, const std::vector<std::string_view> &values,
                 std::vector<Problem> &problems) {
  const std::string_view value = values.front();
  // `X=$UNSET` in a script is no wish for "no limit", but harmless where nothing is limited.
  if (value.empty() && option.effect != Effect::kLimits && values.size() == 1) {
    return;
  }
  settings.origins.push_back({std::string(option.key), std::string(value), Source::kEnvironment});
  std::string wrong =
      value.empty() ? "it is empty; unset it, or give it a value" : option.read(settings, option, value);
  for (std::size_t i = 1; i < values.size(); ++i) {
    Settings other;
    if (option.effect == Effect::kLimits) {
      option.read(other, option, values[i]);
      settings.limit.insert(settings.limit.end(), other.limit.begin(), other.limit.end());
      hold_groups_of(other, settings);
    }
    wrong = wrong.empty() ? "the environment gives it a second time, as " + quoted(values[i]) : wrong;
  }
  if (!wrong.empty()) {
    refuse(settings, option, value, std::move(wrong), problems);
  }
}

void note_unbuilt_limits(Settings &settings, std::vector<Problem> &problems) {
  if (!settings.config_file.empty()) {
    settings.limit_in_doubt = true;
    problems.push_back(problem_of("config", "RATION_CONFIG", settings.config_file,
                                  "settings are not read from files yet; the process gets no more than 75% of each "
                                  "device, nor than any other limit",
                                  "", false));
  }
}

void note_unknown_names(const char *const *environment, std::vector<Problem> &problems) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    if (name.substr(0, kPrefix.size()) != kPrefix || option_of_variable(name) != nullptr) {
      continue;
    }
    std::string sentence = "there is no such setting; the nearest is " + std::string(nearest_variable(name));
    if (name.substr(0, 13) == "RATION_LIMIT_") {
      sentence += " (per device: RATION_LIMIT=0=8GiB,GPU-1f2e=50%)";
    }
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    problems.push_back(problem_of(name, name, value, std::move(sentence), "", false));
  }
}

}  // namespace

Settings read_environment(const char *const *environment, std::vector<Problem> &problems) {
  Settings settings;
  std::vector<Problem> found;
  for (const Option &option : options()) {
    const std::vector<std::string_view> values = values_of(option.variable, environment);
    if (!values.empty()) {
      read_option(settings, option, values, found);
    }
  }
  settle_groups(settings, found);
  note_unbuilt_limits(settings, found);
  note_unknown_names(environment, found);
  if (!settings.disabled) {  // inert means silent, too
    problems.insert(problems.end(), found.begin(), found.end());
  }
  return settings;
}

bool Settings::limit_asked() const {
  return !limit.empty() || !groups.empty() || !stray_group_limit.empty() || limit_in_doubt ||
         (reserve && *reserve != Size::of_bytes(0));
}

Settings::Limit Settings::limit_on(const DeviceIdentity &device) const {
  const std::uint64_t total = device.total_bytes;
  Limit result{false, total};
  const auto hold = [&result](std::uint64_t bytes) {
    result.asked = true;
    result.bytes = std::min(result.bytes, bytes);
  };
  for (const LimitMap *items : {&limit, &stray_group_limit}) {
    for (const LimitItem &item : *items) {
      if (item.fits(device)) {
        hold(item.size.bytes_of(total));
      }
    }
  }
  if (reserve && *reserve != Size::of_bytes(0)) {
    hold(total - std::min(total, reserve->bytes_of(total)));
  }
  if (limit_in_doubt) {
    hold(three_quarters(total));
  }
  return result;
}

std::optional<std::uint64_t> Settings::group_limit_on(const Group &group, const DeviceIdentity &device) const {
  const std::uint64_t total = device.total_bytes;
  std::optional<std::uint64_t> least;
  const auto hold = [&](std::uint64_t bytes) { least = std::min(least.value_or(total), bytes); };
  for (const LimitItem &item : group.limit) {
    if (item.fits(device)) {
      hold(item.size.bytes_of(total));
    }
  }
  if (group.in_doubt) {
    hold(three_quarters(total));
  }
  return least;
}

Settings::Preallocation Settings::preallocation_on(const DeviceIdentity &device) const {
  const std::uint64_t total = device.total_bytes;
  const Limit held = limit_on(device);
  Preallocation result;
  if (const Size *size = std::get_if<Size>(&preallocate)) {
    result.bytes = std::min(size->bytes_of(total), held.bytes);
  } else if (std::get<bool>(preallocate)) {
    result.bytes = held.asked ? held.bytes : three_quarters(total);
  }
  result.after = preallocate_after.bytes_of(total);
  result.headroom = headroom ? headroom->bytes_of(total) : std::max(kLeastHeadroom, total / kHeadroomPart);
  return result;
}

}  // namespace ration::config

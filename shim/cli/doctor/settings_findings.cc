// Checks the settings in force: what is wrong with them, and which have no effect. Layer: cli.
#include <algorithm>

#include "base/file_name.h"
#include "cli/doctor/checkup.h"
#include "cli/run/log_target.h"
#include "config/files/small_file.h"
#include "config/locks.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kUuidShown = 12;  // "GPU-" and enough digits to tell most devices apart

Check check_of(const config::Problem &problem) {
  if (problem.fatal_for_cli || config::is_third_party_variable(problem.key)) {
    return Check::setting_malformed;
  }
  return config::option_of_key(problem.key) == nullptr ? Check::setting_unknown : Check::setting_malformed;
}

void check_without_effect(const Checkup &checkup, Findings &found) {
  const config::Settings &settings = checkup.settings;
  // True if what is wrong with it is reported elsewhere.
  const auto is_said = [&](const config::ThirdPartyVariable &variable) {
    const auto names_it = [&](const config::Problem &each) { return each.written == variable.written(); };
    return std::any_of(checkup.problems.begin(), checkup.problems.end(), names_it) ||
           std::any_of(checkup.device_problems.begin(), checkup.device_problems.end(), names_it);
  };
  for (const std::string_view key : {"stacks", "log_size"}) {
    const config::Origin *origin = settings.origin_of(key);
    if (origin != nullptr && origin->value != "none" && settings.log.empty()) {
      found.push_back({Check::setting_without_effect, origin->written() + " has no effect without a log",
                       "set RATION_LOG too, or give --log"});
    }
  }
  for (const config::ThirdPartyVariable &each : settings.third_party) {
    if (each.disposition == config::Disposition::kIgnored && !is_said(each)) {
      found.push_back({Check::setting_without_effect, each.written() + " has no effect here: " + each.reason, {}});
    }
  }
}

void check_log(const Checkup &checkup, Findings &found) {
  const config::Origin *origin = checkup.settings.origin_of("log");
  // A running process has already opened its log, or failed to.
  if (origin == nullptr || checkup.settings.log.empty() || checkup.process) {
    return;
  }
  const std::string program = checkup.walk ? checkup.walk->stages.back().words.front() : "program";
  const std::string obstacle = obstacle_to_log(checkup.settings.log, std::string(file_name(program)));
  if (!obstacle.empty()) {
    found.push_back({Check::setting_unwritable_log, origin->written() + ": " + config::printable(obstacle), {}});
  }
}

void check_locks(Findings &found) {
  for (const config::FilePlace &place : config::places_of_files(config::own_context())) {
    if (place.source != config::Source::kSystemFile && place.source != config::Source::kDropIn) {
      continue;
    }
    const config::SmallFile file = config::read_small_file(place.path, place.trust);
    if (!file.there || !file.wrong.empty()) {
      continue;  // reported as a problem of the settings
    }
    const config::FileReading reading = config::read_settings_text(file.text, place.path, place.source, nullptr);
    for (const std::string &line : config::escapable_locks(reading, place.path, config::system_folder())) {
      found.push_back({Check::setting_lock_escapable, line, {}});
    }
  }
}

// The remedy for a limit on a device that does not exist.
std::string name_a_device(const Checkup &checkup) {
  std::string text = "name a device that programs get here, by number or UUID:";
  const std::vector<config::DeviceIdentity> &devices = checkup.machine.driver.devices;
  for (std::size_t i = 0; i < std::min(devices.size(), kMostNamed); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(devices[i].ordinal) +
            (devices[i].uuid.empty() ? "" : " (" + devices[i].uuid.substr(0, kUuidShown) + ")");
  }
  text += devices.size() > kMostNamed ? ", ..." : "";
  const std::string visible = checkup.probed.value("CUDA_VISIBLE_DEVICES");
  return visible.empty()
             ? text
             : text + "; CUDA_VISIBLE_DEVICES=" + config::shown(visible) + " hides others, and numbers these";
}

std::string in_force(const config::Settings &settings) {
  std::string text;
  for (const config::Origin &origin : settings.origins) {
    if (config::option_of_key(origin.key)->scope != config::Scope::kInternal) {
      text += (text.empty() ? "" : ", ") + origin.in_force() + (origin.locked ? " (locked)" : "");
    }
  }
  return text.empty() ? "no setting is set: all have their defaults" : "settings: " + text;
}

}  // namespace

Findings check_settings(const Checkup &checkup) {
  Findings found;
  const config::Settings &settings = checkup.settings;
  for (const config::Problem &problem : checkup.problems) {
    found.push_back({check_of(problem), problem.line, {}});
  }
  for (const config::Problem &problem : checkup.device_problems) {
    const bool is_of_limit = problem.key != "reserve";  // `reserve` may leave nothing of a device
    found.push_back({is_of_limit ? Check::setting_absent_device : Check::setting_malformed, problem.line,
                     is_of_limit ? name_a_device(checkup) : ""});
  }
  for (const config::Problem &cut : settings.cut_by_locks(checkup.machine.driver.devices)) {
    found.push_back({Check::setting_cut, cut.line, {}});
  }
  check_without_effect(checkup, found);
  check_log(checkup, found);
  check_locks(found);
  if (checkup.process) {  // the process's own finding says whether it is limited
  } else if (settings.disabled) {
    found.push_back(
        {Check::disabled, "RATION_DISABLE=1: programs that are started here are neither limited nor counted", {}});
  } else if (!settings.limit_asked()) {
    found.push_back({Check::limit_none, "no limit is set here: programs are counted, not limited", {}});
  }
  found.push_back({Check::settings, in_force(settings), {}});
  return found;
}

}  // namespace ration::cli::doctor

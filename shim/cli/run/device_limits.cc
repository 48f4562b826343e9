#include "cli/run/device_limits.h"

#include <algorithm>
#include <string>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/run/driver_probe.h"
#include "cli/run/run_preparation.h"
#include "config/values/limit_map.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli {

namespace {

constexpr std::string_view kOfEachDevice[] = {"limit", "group_limit", "container_limit", "group_tree", "guarantee"};

constexpr std::string_view kReserve = "reserve";

// What is wrong with a reserve: it leaves nothing of a device. The value was already parsed without error.
std::string error_in_reserve(const std::string &value, const std::vector<config::DeviceIdentity> &devices) {
  const auto amount = config::parse_amount(value, {});
  const auto *size = std::get_if<config::Size>(&amount);
  for (const config::DeviceIdentity &device : devices) {
    if (size != nullptr && device.total_bytes != 0 && size->bytes_of(device.total_bytes) >= device.total_bytes) {
      return "it leaves no memory on device " + std::to_string(device.ordinal) + ", which has " +
             config::show_bytes(device.total_bytes);
    }
  }
  return {};
}

// The items of an option that name a device. The value was already parsed without error.
config::LimitMap named_devices(const config::Option &option, const std::string &value) {
  config::LimitMap items;
  if (std::find(std::begin(kOfEachDevice), std::end(kOfEachDevice), option.key) != std::end(kOfEachDevice)) {
    (void)config::parse_limit(value, items);
    std::erase_if(items, [](const config::LimitItem &item) { return item.name.empty(); });
  }
  return items;
}

// Mentions CUDA_VISIBLE_DEVICES if it is set, because the program's device numbers then differ from the machine's.
std::string said_of_ordinals(const EnvironmentBlock &environment) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";
  const std::vector<const char *> entries = environment.pointers();
  const bool is_set = std::any_of(entries.begin(), entries.end(), [&](const char *entry) {
    return entry != nullptr && std::string_view(entry).starts_with(std::string(kVisible) + "=");
  });
  return is_set ? " (" + std::string(kVisible) + "=" + config::shown(environment.value(kVisible)) + ")" : "";
}

}  // namespace

std::vector<std::string> limits_beyond(const config::Settings &settings, const config::DeviceIdentity &device) {
  std::vector<std::string> sentences;
  const auto tell = [&](const config::LimitMap &limit, const std::string &whose) {
    const auto bytes = config::smallest_limit(limit, device);
    if (bytes && device.total_bytes != 0 && *bytes > device.total_bytes) {
      sentences.push_back("the limit of " + config::show_bytes(*bytes) + whose + " is larger than device " +
                          std::to_string(device.ordinal) + ", which has " + config::show_bytes(device.total_bytes));
    }
  };
  tell(settings.limit, "");
  for (const config::Settings::Group &group : settings.groups) {
    if (group.kind == config::Settings::Group::Kind::kNamed) {
      tell(group.limit, " of the group " + config::printable(group.name));
    }
  }
  return sentences;
}

bool names_devices(const RunRequest &request) {
  return std::any_of(request.flags.begin(), request.flags.end(), [](const auto &flag) {
    return flag.first->key == kReserve || !named_devices(*flag.first, flag.second).empty();
  });
}

std::vector<config::Problem> errors_in_device_limits(const RunRequest &request,
                                                     const std::vector<config::DeviceIdentity> &devices,
                                                     const EnvironmentBlock &environment) {
  std::vector<config::Problem> problems;
  for (const auto &[option, value] : request.flags) {
    if (std::string wrong = option->key == kReserve ? error_in_reserve(value, devices) : ""; !wrong.empty()) {
      problems.push_back(
          config::problem_at(option->key, std::string(option->flag) + " " + config::shown(value), wrong, {}, true));
    }
    for (const config::DeviceError &error : config::errors_in_devices(named_devices(*option, value), devices)) {
      if (error.kind != config::DeviceError::Kind::kNoUuids) {
        const bool is_absent = error.kind == config::DeviceError::Kind::kAbsent;
        problems.push_back(config::problem_at(
            option->key, std::string(option->flag) + (option->key == "group_tree" ? "=" : " ") + config::shown(value),
            error.sentence + (is_absent ? said_of_ordinals(environment) : ""), {}, true));
      }
    }
  }
  return problems;
}

void refuse_absent_devices(const RunRequest &request, const EnvironmentBlock &environment) {
  if (!names_devices(request)) {
    return;
  }
  const auto devices = ask_devices(environment);
  if (!devices) {
    return;
  }
  const std::vector<config::Problem> problems = errors_in_device_limits(request, *devices, environment);
  for (const config::Problem &problem : problems) {
    log_error(request.verb + ": " + problem.line);
  }
  if (!problems.empty()) {
    throw Refusal{kOurError, {}};
  }
}

}  // namespace ration::cli

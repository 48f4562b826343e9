// `ration env`: prints the settings of a program started here, and the source of each. Layer: cli.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "cli/run/device_limits.h"
#include "cli/run/driver_probe.h"
#include "cli/run/run_preparation.h"
#include "cli/run/simulated_machine.h"
#include "cli/settings_files.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

// The sources of one key: first the one in force, then those that further restrict it.
std::vector<const config::Origin *> origins_of(const config::Settings &settings, std::string_view key) {
  std::vector<const config::Origin *> origins;
  for (const config::Origin &origin : settings.origins) {
    if (origin.key == key) {
      origins.push_back(&origin);
    }
  }
  return origins;
}

nlohmann::json source_of(const config::Origin &origin) {
  nlohmann::json source = {
      {"source", config::name_of(origin.source)}, {"value", origin.value}, {"locked", origin.locked}};
  if (!origin.instead.empty()) {
    source["value"] = nullptr;
    source["refused"] = origin.value.empty() ? origin.place : origin.value;
    source["instead"] = origin.instead;
  }
  if (!origin.place.empty()) {
    source["place"] = origin.place;
  }
  return source;
}

nlohmann::json setting_of(const config::Settings &settings, const config::Option &option) {
  nlohmann::json row = {{"source", config::name_of(config::Source::kDefault)}, {"value", nullptr}, {"locked", false}};
  const auto origins = origins_of(settings, option.key);
  if (!origins.empty()) {
    row = source_of(*origins.front());
    for (auto beside = origins.begin() + 1; beside != origins.end(); ++beside) {
      row["beside"].push_back(source_of(**beside));
      row["locked"] = row["locked"] || (*beside)->locked;
    }
    const auto size = config::parse_size(
        config::takes_size(option) && origins.front()->instead.empty() ? origins.front()->value : "");
    if (const auto *read = std::get_if<config::Size>(&size); read != nullptr && !read->is_share()) {
      row["value_bytes"] = read->bytes_of(0);
    }
  }
  row["key"] = option.key;
  row["variable"] = option.variable;
  row["default"] = option.fallback;
  return row;
}

nlohmann::json as_json(const config::Settings &settings, const std::vector<config::Problem> &problems,
                       const nlohmann::json &devices) {
  nlohmann::json document = {{"schema", "ration.env/1"},           {"settings", nlohmann::json::array()},
                             {"foreign", nlohmann::json::array()}, {"files", nlohmann::json::array()},
                             {"devices", nlohmann::json::array()}, {"problems", nlohmann::json::array()}};
  for (const config::Option &option : config::options()) {
    if (option.scope != config::Scope::kInternal) {
      document["settings"].push_back(setting_of(settings, option));
    }
  }
  for (const config::ThirdPartyVariable &word : settings.third_party) {
    document["foreign"].push_back({{"variable", word.variable},
                                   {"value", word.value},
                                   {"standing", config::name_of(word.disposition)},
                                   {"reason", word.reason}});
  }
  for (const std::string &file : settings.files) {
    document["files"].push_back({{"path", file}});
  }
  for (nlohmann::json device :
       devices) {  // as the log's `meta` has it, where a limit that nobody asked for is the total
    if (!device.value("limit_asked", false)) {
      device["limit"] = nullptr;
    }
    device.erase("limit_asked");
    device["total_bytes"] = device["total"];
    device.erase("total");
    document["devices"].push_back(std::move(device));
  }
  for (const config::Problem &problem : problems) {
    document["problems"].push_back({{"key", problem.key}, {"what", problem.line}, {"fatal", problem.fatal_for_cli}});
  }
  return document;
}

std::vector<config::DeviceIdentity> identities_of(const nlohmann::json &devices) {
  std::vector<config::DeviceIdentity> identities;
  for (const nlohmann::json &device : devices) {
    identities.push_back({device.value("dev", 0), device.value("uuid", ""), device.value("total", std::uint64_t{0})});
  }
  return identities;
}

void print_row(std::string_view name, std::string_view source, const std::string &text) {
  std::ostringstream titles;
  titles << std::left << std::setw(20) << name << std::setw(13) << source;
  for (const std::string &line : wrapped(text, output_width(), titles.str())) {
    std::cout << line << '\n';
  }
}

// The limits that apply to the process on this device.
std::string limits_of(const nlohmann::json &device) {
  const auto group_limit = device.value("group_limit", std::uint64_t{0});
  std::string text = ", no limit";
  if (device.value("limit_asked", false)) {
    text = ", limit " + config::show_bytes(device.value("limit", std::uint64_t{0}));
  }
  return text + (group_limit != 0 ? ", group's limit " + config::show_bytes(group_limit) : "");
}

void print_table(const config::Settings &settings, const nlohmann::json &devices) {
  for (const config::Option &option : config::options()) {
    if (option.scope == config::Scope::kInternal) {
      continue;
    }
    std::string_view name = option.key;
    for (const config::Origin *origin : origins_of(settings, option.key)) {
      print_row(name, config::name_of(origin->source), origin->in_force() + (origin->locked ? " (locked)" : ""));
      name = "  and";
    }
    if (name == option.key) {
      print_row(name, config::name_of(config::Source::kDefault),
                option.key == "state_dir" ? config::shown(settings.state_folder()) : std::string(option.fallback));
    }
  }
  for (const config::ThirdPartyVariable &word : settings.third_party) {
    const std::string line = config::shown(word.variable) + "=" + config::shown(word.value) + ": " +
                             std::string(config::name_of(word.disposition)) + ": " + config::printable(word.reason);
    for (const std::string &each : fitting({line}, output_width())) {
      std::cout << each << '\n';
    }
  }
  for (const nlohmann::json &device : devices) {
    const std::string backing = device.value("backing", "");
    const std::string size = config::show_bytes(device.value("total", std::uint64_t{0}));
    print_row("device " + std::to_string(device.value("dev", 0)), "driver",
              config::printable(device.value("name", "")) + " of " + size + limits_of(device) +
                  (backing.empty() ? "" : ", backing " + backing + ": " + device.value("backing_reason", "")));
  }
}

}  // namespace

int run_verb(const EnvRequest &request) try {
  if (request.files) {
    return list_settings_files(request.json) ? 0 : kOurError;
  }
  if (request.check) {
    std::vector<std::string> paths = request.run.command;
    paths.insert(paths.begin(), *request.check);
    return check_settings_files(paths, request.json) ? 0 : kOurError;
  }
  if (const std::string wrong = error_in_simulation(request.run.simulate); !wrong.empty()) {
    return usage_error("env: " + wrong, kUsageError);
  }
  refuse_wrong_wait(request.run);
  refuse_wrong_tree(request.run);
  EnvironmentBlock environment(config::process_environment());
  set_flags(request.run, environment);
  std::vector<config::Problem> problems;
  config::Settings settings = settings_of(request.run, environment, problems);
  std::vector<config::Problem> fatal_ones;
  for (const config::Problem &problem : problems) {
    if (!problem.fatal_for_cli) {
      if (request.json || !config::is_third_party_variable(problem.key)) {  // it has a line in the table
        log_line(problem.line);                                             // as the library would
      }
      continue;
    }
    fatal_ones.push_back(problem);
    log_line("env: " + as_written(request.run, problem) + problem.line.substr(problem.written.size()));
  }
  int status = fatal_ones.empty() ? 0 : status_of(request.run, fatal_ones);
  const nlohmann::json devices = status != 0 ? nlohmann::json::array() : ask_driver(request.run, environment);
  if (!devices.empty() && !settings.disabled) {
    for (config::Problem &problem : errors_in_device_limits(request.run, identities_of(devices), environment)) {
      status = usage_status(request.run);  // only options are checked here
      log_line("env: " + problem.line);
      problems.push_back(std::move(problem));
    }
    std::vector<config::Problem> of_devices;  // the library reports the same in a program
    settings.resolve_devices(identities_of(devices), of_devices);
    for (config::Problem &problem : of_devices) {
      const auto is_its_option = [&](const auto &flag) { return flag.first->key == problem.key; };
      if (std::none_of(request.run.flags.begin(), request.run.flags.end(), is_its_option)) {
        log_line(problem.line);
        problems.push_back(std::move(problem));
      }
    }
    for (config::Problem &cut : settings.cut_by_locks(identities_of(devices))) {
      log_line(cut.line);
      problems.push_back(std::move(cut));
    }
    for (const config::DeviceIdentity &device : identities_of(devices)) {
      for (const std::string &sentence : limits_beyond(settings, device)) {
        log_line(sentence);
      }
    }
  }
  if (request.json) {
    // A value may hold any bytes; those that are not UTF-8 become the replacement character.
    std::cout << as_json(settings, problems, devices).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  } else {
    print_table(settings, devices);
  }
  return flush_stdout() ? status : kOurError;
} catch (const Refusal &refusal) {  // because of --sim
  if (!refusal.line.empty()) {
    log_error("env: " + refusal.line);
  }
  return refusal.exit_status;
}

}  // namespace ration::cli

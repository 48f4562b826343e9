// `ration env`: the settings that a program started from here would have, and where each comes from. Layer: cli.
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/exit_status.h"
#include "cli/talk.h"
#include "cli/verbs.h"

namespace ration::cli {

namespace {

const config::Settings::Origin *origin_of(const config::Settings &settings, std::string_view key) {
  for (const auto &origin : settings.origins) {
    if (origin.key == key) {
      return &origin;
    }
  }
  return nullptr;
}

nlohmann::json as_json(const config::Settings &settings, const std::vector<config::Problem> &problems) {
  nlohmann::json document = {
      {"schema", "ration.env/1"}, {"settings", nlohmann::json::array()}, {"problems", nlohmann::json::array()}};
  for (const config::Option &option : config::options()) {
    if (option.state == config::State::kInternal) {
      continue;
    }
    const auto *origin = origin_of(settings, option.key);
    nlohmann::json row = {{"key", option.key},
                          {"variable", option.variable},
                          {"default", option.fallback},
                          {"source", origin == nullptr ? "default" : "environment"},
                          {"built", option.state == config::State::kBuilt}};
    row["value"] = origin == nullptr ? nlohmann::json(nullptr) : nlohmann::json(origin->value);
    const bool takes_size = option.values.find("SIZE") != std::string_view::npos;
    const auto size = config::parse_size(origin == nullptr || !takes_size ? "" : origin->value);
    if (const auto *read = std::get_if<config::Size>(&size); read != nullptr && !read->is_share()) {
      row["bytes"] = read->bytes_of(0);
    }
    document["settings"].push_back(row);
  }
  for (const config::Problem &problem : problems) {
    document["problems"].push_back({{"key", problem.key}, {"line", problem.line}, {"fatal", problem.fatal_for_cli}});
  }
  return document;
}

void print_table(const config::Settings &settings) {
  for (const config::Option &option : config::options()) {
    if (option.state == config::State::kInternal) {
      continue;
    }
    const auto *origin = origin_of(settings, option.key);
    std::cout << std::left << std::setw(20) << option.key;
    if (origin == nullptr) {
      std::cout << "default      " << option.fallback << '\n';
    } else {
      std::cout << "environment  " << option.variable << "=" << origin->value << '\n';
    }
  }
}

}  // namespace

void describe_env(CLI::App &verb, EnvRequest &request) {
  verb.add_flag("--json", request.json, "one JSON document, sizes in bytes");
  verb.footer(
      "Examples:\n  ration env\n  RATION_LIMIT=40% ration env --json\n\n"
      "Exit status: 0, or 125 where a setting cannot be used as it is written.");
}

int env(const EnvRequest &request) {
  std::vector<config::Problem> problems;
  const config::Settings settings = config::read_environment(config::process_environment(), problems);
  bool fatal = false;
  for (const config::Problem &problem : problems) {
    fatal = fatal || problem.fatal_for_cli;
    say(problem.line);
  }
  if (request.json) {
    // A value may hold any bytes; what is no UTF-8 is shown as the replacement character.
    std::cout << as_json(settings, problems).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    print_table(settings);
  }
  return std::cout.flush() && !fatal ? 0 : kOurError;
}

}  // namespace ration::cli

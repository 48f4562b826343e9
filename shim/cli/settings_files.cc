#include "cli/settings_files.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/base/log.h"
#include "config/files/small_file.h"
#include "config/locks.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"
#include "logs/output/json_or_null.h"

namespace ration::cli {

namespace {

// The kind of settings file that has this path. A file elsewhere is taken for a system file, which may set every key.
config::Source source_of(const std::string &path) {
  std::error_code ignored;
  for (const config::FilePlace &place : config::places_of_files(config::own_context())) {
    if (std::filesystem::equivalent(path, place.path, ignored)) {
      return place.source;
    }
  }
  return config::Source::kSystemFile;
}

struct Mistake {
  std::string key;
  std::string what;
  bool is_used = false;  // the file is used as written all the same
};

// A limit for a group in a file that names none: each program outside of groups is held to it alone. nullopt if there
// is none, or if it is locked, which is reported as a lock that can be escaped.
std::optional<Mistake> limit_without_group(const config::FileReading &reading) {
  const auto find = [&](std::string_view key) {
    return std::find_if(reading.statements.begin(), reading.statements.end(),
                        [&](const config::Statement &each) { return each.origin.key == key; });
  };
  const auto limit = find("group_limit");
  if (limit == reading.statements.end() || limit->origin.locked || find("group") != reading.statements.end()) {
    return std::nullopt;
  }
  return Mistake{"group_limit",
                 limit->origin.written() +
                     ": this file names no group; a program that is started in none is held to "
                     "it alone, and says so at each start; set group too, or limit instead",
                 true};
}

// What is wrong with the file.
std::vector<Mistake> mistakes_in(const std::string &path) {
  const config::SmallFile file = config::read_small_file(path, config::Trust::kAnybody);
  if (!file.there || !file.wrong.empty()) {
    return {{"", config::printable(path) + ": " + (file.there ? file.wrong : "there is no such file")}};
  }
  std::vector<Mistake> mistakes;
  // No program is given for the rules in the file.
  const config::FileReading reading = config::read_settings_text(file.text, path, source_of(path), nullptr);
  for (const config::Problem &problem : reading.problems) {
    mistakes.push_back({problem.key, problem.written + ": " + problem.sentence});
  }
  for (const config::Statement &statement : reading.statements) {
    if (const std::string wrong = config::error_in_statement(statement); !wrong.empty()) {
      mistakes.push_back({std::string(statement.origin.key), statement.origin.written() + ": " + wrong});
    }
  }
  for (const std::string &line : config::escapable_locks(reading, path, config::system_folder())) {
    mistakes.push_back({"locked", line, true});
  }
  if (auto limit = limit_without_group(reading)) {
    mistakes.push_back(std::move(*limit));
  }
  return mistakes;
}

// Paths may hold any bytes.
void print(const nlohmann::ordered_json &files) {
  const nlohmann::ordered_json document = {{"schema", "ration.files/1"}, {"files", files}};
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace

bool list_settings_files(bool as_json) {
  const config::SettingsContext own = config::own_context();
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  bool good = true;
  for (const config::FilePlace &place : config::places_of_files(own)) {
    const config::SmallFile file = config::read_small_file(place.path, place.trust);
    const std::string state = !file.there ? "absent" : file.wrong.empty() ? "read" : "refused";
    files.push_back({{"path", place.path},
                     {"source", config::name_of(place.source)},
                     {"state", state},
                     {"reason", logs::or_null(!file.wrong.empty(), file.wrong)}});
    if (!as_json) {
      std::cout << config::printable(place.path) << "  " << config::name_of(place.source) << "  " << state
                << (file.wrong.empty() ? "" : ": " + file.wrong) << '\n';
    }
    good = good && file.wrong.empty();
  }
  if (as_json) {
    print(files);
  }
  return flush_stdout() && good;
}

bool check_settings_files(const std::vector<std::string> &paths, bool as_json) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  bool good = true;
  for (const std::string &path : paths) {
    const std::vector<Mistake> mistakes = mistakes_in(path);
    good = good && mistakes.empty();
    files.push_back({{"path", path}, {"holds", mistakes.empty()}, {"problems", nlohmann::ordered_json::array()}});
    for (const Mistake &each : mistakes) {
      files.back()["problems"].push_back({{"key", each.key}, {"what", each.what}, {"fatal", !each.is_used}});
      if (!as_json) {
        log_error("env: " + each.what);
      }
    }
  }
  if (as_json) {
    print(files);
  }
  return flush_stdout() && good;
}

}  // namespace ration::cli

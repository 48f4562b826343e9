#include "cli/settings_files.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "cli/base/log.h"
#include "config/files/small_file.h"
#include "config/locks.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

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

// Logs a line for each mistake. True if there is none.
bool check_file(const std::string &path) {
  const config::SmallFile file = config::read_small_file(path, config::Trust::kAnybody);
  if (!file.there || !file.wrong.empty()) {
    log_error("env: " + config::printable(path) + ": " + (file.there ? file.wrong : "there is no such file"));
    return false;
  }
  // No program is given for the rules in the file.
  const config::FileReading reading = config::read_settings_text(file.text, path, source_of(path), nullptr);
  bool good = reading.problems.empty();
  for (const config::Problem &problem : reading.problems) {
    log_line("env: " + problem.written + ": " + problem.sentence);
  }
  for (const config::Statement &statement : reading.statements) {
    if (const std::string wrong = config::error_in_statement(statement); !wrong.empty()) {
      log_error("env: " + statement.origin.written() + ": " + wrong);
      good = false;
    }
  }
  for (const std::string &line : config::escapable_locks(reading, path)) {
    log_line("env: " + line);
  }
  return good;
}

}  // namespace

bool list_settings_files() {
  const config::SettingsContext own = config::own_context();
  bool good = true;
  for (const config::FilePlace &place : config::places_of_files(own)) {
    const config::SmallFile file = config::read_small_file(place.path, place.trust);
    const std::string state = !file.there ? "absent" : file.wrong.empty() ? "read" : "refused: " + file.wrong;
    std::cout << config::printable(place.path) << "  " << config::name_of(place.source) << "  " << state << '\n';
    good = good && file.wrong.empty();
  }
  return flush_stdout() && good;
}

bool check_settings_files(const std::vector<std::string> &paths) {
  bool good = true;
  for (const std::string &path : paths) {
    good = check_file(path) && good;
  }
  return good;
}

}  // namespace ration::cli

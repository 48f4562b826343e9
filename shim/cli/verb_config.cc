// `ration config`: lists the settings files, or prints the mistakes in a file. Layer: cli.
#include <filesystem>
#include <iostream>
#include <system_error>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "config/files/small_file.h"
#include "config/locks.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

// What the file is where it lies. Elsewhere it is taken for a system file, which may set every key.
config::Source source_of(const std::string &path) {
  std::error_code ignored;
  for (const config::FilePlace &place : config::places_of_files(config::own_context())) {
    if (std::filesystem::equivalent(path, place.path, ignored)) {
      return place.source;
    }
  }
  return config::Source::kSystemFile;
}

// Logs a line for each mistake. True where there is none.
bool check(const std::string &path) {
  const config::SmallFile file = config::read_small_file(path, config::Trust::kAnybody);
  if (!file.there || !file.wrong.empty()) {
    log_error("config: " + config::printable(path) + ": " + (file.there ? file.wrong : "there is no such file"));
    return false;
  }
  // Without a program for its rules.
  const config::FileReading reading = config::read_settings_text(file.text, path, source_of(path), nullptr);
  bool good = reading.problems.empty();
  for (const config::Problem &problem : reading.problems) {
    log_line("config: " + problem.written + ": " + problem.sentence);
  }
  for (const config::Statement &statement : reading.statements) {
    if (const std::string wrong = config::error_in_statement(statement); !wrong.empty()) {
      log_error("config: " + statement.origin.written() + ": " + wrong);
      good = false;
    }
  }
  for (const std::string &line : config::escapable_locks(reading)) {
    log_line("config: " + line);
  }
  return good;
}

// One line for each file, the highest precedence first.
bool list() {
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

}  // namespace

int run_verb(const ConfigRequest &request) {
  bool good = true;
  for (const std::string &path : request.files) {
    good = check(path) && good;
  }
  return (request.files.empty() ? list() : good) ? 0 : kOurError;
}

}  // namespace ration::cli

// The inputs of the settings, and the function that reads them. Layer: config. Threads: values.
// Called from: first use, once, and the command; no later CUDA call reads the environment or a file.
#pragma once

#include <string>
#include <vector>

#include "config/files/program_rules.h"
#include "config/files/settings_file.h"
#include "config/files/small_file.h"
#include "config/settings.h"

namespace ration::config {

struct SettingsContext {
  const char *const *environment = nullptr;  // NULL-terminated "NAME=value" list, as it is now
  ProgramIdentity program;                   // what the rules in files match
  std::string system_folder;                 // empty: none
  // The program has more rights than the user who started it (AT_SECURE). In that case no file that the user names is
  // read or written, not even to report a mistake in it.
  bool privileged = false;
  std::string framework;              // name of a loaded library that reads XLA_* and TF_* itself; empty: none
  std::vector<std::string> at_start;  // from start_environment.h; used for names that `environment` lacks
};

// The context of this process. The system folder is fixed at build time, because a variable that moved it could remove
// the system's ceilings.
SettingsContext own_context();
std::string system_folder();

// The environment variables that apply, NULL-terminated; valid as long as `context`.
std::vector<const char *> environment_of(const SettingsContext &context);

// The places where settings files may be, strongest first. Drop-in files are listed only if they exist.
struct FilePlace {
  std::string path;
  Source source;
  Trust trust;
};
std::vector<FilePlace> places_of_files(const SettingsContext &context);

// Throws only bad_alloc.
// Design: design/settings.md#one-reading
Settings read_settings(const SettingsContext &context, std::vector<Problem> &problems);

// The error in a statement by itself, in the words of its option's parser; empty if there is none.
std::string error_in_statement(const Statement &statement);

}  // namespace ration::config

// The statements from environment variables and files, before precedence is applied. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/settings_context.h"

namespace ration::config {

// A folder below the system folder.
inline constexpr std::string_view kDropInFolder = "conf.d";

// The value of the first entry NAME=VALUE; empty if there is no such entry.
std::string first_of(std::string_view variable, const char *const *environment);

// The statements of all RATION_* variables that are set.
std::vector<Statement> statements_of_variables(const SettingsContext &context);

struct FilesRead {
  std::vector<std::string> paths;  // strongest first, like their statements
  // Files that could not be used, wholly or in part. Each may have contained a limit, so the strictest limit applies
  // instead.
  std::vector<Origin> doubtful;
  bool is_named_unused = false;  // the file that RATION_CONFIG names was not used at all
};

// Appends the statements in the files.
FilesRead statements_of_files(const SettingsContext &context, std::vector<Statement> &statements,
                              std::vector<Problem> &problems);

}  // namespace ration::config

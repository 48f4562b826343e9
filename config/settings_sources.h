// The statements of variables and files, before precedence is applied. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/settings_context.h"

namespace ration::config {

// Below the system folder.
inline constexpr std::string_view kDropInFolder = "conf.d";

// Of the first entry NAME=VALUE the value; empty: there is none.
std::string first_of(std::string_view variable, const char *const *environment);

// Of every RATION_* variable that is set.
std::vector<Statement> statements_of_variables(const SettingsContext &context);

struct FilesRead {
  std::vector<std::string> paths;  // strongest first, as their statements
  // Of each file that cannot be used, or not wholly: it may have held a limit, instead of which the strictest holds.
  std::vector<Origin> doubtful;
  bool is_named_unused = false;  // nothing of the file that RATION_CONFIG names is used
};

// Appends the statements of the files.
FilesRead statements_of_files(const SettingsContext &context, std::vector<Statement> &statements,
                              std::vector<Problem> &problems);

}  // namespace ration::config

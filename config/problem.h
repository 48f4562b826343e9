// One mistake in a setting, as one line. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// A setting that cannot be used as written, or has no effect.
struct Problem {
  std::string key;       // of options.inc; a third-party variable: its name
  std::string line;      // the whole sentence for stderr, without prefix and newline
  bool fatal_for_cli;    // `ration run` starts nothing
  std::string sentence;  // what is wrong, without `written` before it and the value in force after it
  std::string written;   // the setting and its source: "RATION_LIMIT=8Gib"
  bool in_variable;      // a RATION_* variable, which an option of `ration run` may have set
};

// The end of a line about a limit that cannot be parsed.
// Design: design/settings.md#doubtful-limits
inline constexpr std::string_view kStrictestHolds =
    "; until it is corrected, the limit is 75% of each device or any smaller limit that is set";

// The same for a list of settings.
inline constexpr std::string_view kLimitInstead = "at most 75% of each device";

// `instead` ends the line: what holds until the mistake is fixed.
Problem problem_of(std::string_view key, std::string_view variable, std::string_view value, std::string sentence,
                   std::string_view instead, bool fatal_for_cli);

// The same for a file or a third-party variable. `written` is printable.
Problem problem_at(std::string_view key, std::string written, std::string sentence, std::string_view instead,
                   bool fatal_for_cli);

}  // namespace ration::config

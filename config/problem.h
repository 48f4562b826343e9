// One mistake in a setting, reported as one line. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// A setting that cannot be used as written, or that has no effect.
struct Problem {
  std::string key;       // a key of options.inc, or the name of a third-party variable
  std::string line;      // the complete line for stderr, without prefix and newline
  bool fatal_for_cli;    // `ration run` refuses to start the program
  std::string sentence;  // what is wrong: the part of `line` between `written` and `instead`
  std::string written;   // the setting and its source: "RATION_LIMIT=8Gib"
  bool in_variable;      // the setting is in a RATION_* variable, which an option of `ration run` may have set
};

// The end of a line about a limit that cannot be parsed.
// Design: design/settings.md#doubtful-limits
inline constexpr std::string_view kStrictestHolds =
    "; until it is corrected, the limit is 75% of each device or any smaller limit that is set";

// In a list of settings, stands in place of the refused value of a limit that cannot be parsed.
inline constexpr std::string_view kLimitInstead = "at most 75% of each device";

// `instead` is the end of the line: what applies until the mistake is corrected.
Problem problem_of(std::string_view key, std::string_view variable, std::string_view value, std::string sentence,
                   std::string_view instead, bool fatal_for_cli);

// Like problem_of(), for a file or a third-party variable. `written` is printable.
Problem problem_at(std::string_view key, std::string written, std::string sentence, std::string_view instead,
                   bool fatal_for_cli);

}  // namespace ration::config

// What is wrong with one setting, in one line. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// One setting that could not be used as written, or that does not do yet what it says.
struct Problem {
  std::string key;       // of options.inc, or the variable where it is no option of ours
  std::string line;      // the whole sentence for stderr, without prefix and newline
  bool fatal_for_cli;    // `ration run` starts nothing
  std::string sentence;  // what is wrong, without what stands before it and what holds instead behind it
  std::string written;   // what is wrong, as it is written and where: "RATION_LIMIT=8Gib"
  bool in_variable;      // of ours, which may have been set by an option of `ration run`
};

// What holds where a limit that was asked for cannot be read; ends such a sentence.
inline constexpr std::string_view kStrictestHolds =
    "; until then no more than 75% of each device, nor than any other limit";

// `instead` ends the line: what holds until the mistake is mended.
Problem problem_of(std::string_view key, std::string_view variable, std::string_view value, std::string sentence,
                   std::string_view instead, bool fatal_for_cli);

// The same of what is written elsewhere, in a file or in somebody else's variable. `written` is plain.
Problem problem_at(std::string_view key, std::string written, std::string sentence, std::string_view instead,
                   bool fatal_for_cli);

}  // namespace ration::config

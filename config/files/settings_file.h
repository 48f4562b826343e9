// A JSON settings file: keys, rules that apply to some programs only, and locked keys, which no other source may
// loosen. {"limit": {"0": "8GiB"}, "locked": ["limit"], "rules": [{"match": {"exe": "*/python3*"}, "mode": "direct"}]}
// Layer: config. Threads: values. Throws only bad_alloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/files/program_rules.h"
#include "config/options.h"
#include "config/problem.h"
#include "config/source.h"

namespace ration::config {

// One setting as one source states it, before precedence is applied.
struct Statement {
  const Option *option = nullptr;
  Origin origin;
  std::vector<std::string> again;  // other values of the setting from the same source, which contradict the first
  std::string wrong;               // an error that is known before the value is parsed
  bool in_rule = false;            // applies only to programs that a rule matches
  std::string
      needed_by;  // the locked setting, as written(), that needs this one, which is therefore locked too; empty: none
};

struct FileReading {
  std::vector<Statement> statements;  // of two statements with the same key, the later is stronger
  std::vector<Problem> problems;
  bool in_doubt = false;  // something could not be parsed and may have been a limit
};

// If `program` is nullptr, every rule is read, so that all of them are checked.
FileReading read_settings_text(std::string_view text, const std::string &path, Source source,
                               const ProgramIdentity *program);

}  // namespace ration::config

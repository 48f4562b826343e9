// A JSON file of settings: a key for each setting, rules for some programs only, and what nobody may raise.
//   {"limit": {"0": "8GiB"}, "locked": ["limit"], "rules": [{"match": {"exe": "*/python3*"}, "mode": "direct"}]}
// Layer: config. Threads: values. Throws nothing but bad_alloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"
#include "config/problem.h"
#include "config/program_rules.h"
#include "config/source.h"

namespace ration::config {

// One setting as somebody wrote it, whatever holds in the end.
struct Statement {
  const Option *option = nullptr;
  Origin origin;
  std::vector<std::string> again;  // other values that the same place gives it: a contradiction
  std::string wrong;               // known before the value is read
};

struct FileReading {
  std::vector<Statement> statements;  // a later one of a key goes before an earlier one
  std::vector<Problem> problems;
  bool in_doubt = false;  // what could not be read may have been a limit
};

// `program` nullptr: the rules for every program, to be checked.
FileReading read_settings_text(std::string_view text, const std::string &path, Source source,
                               const ProgramIdentity *program);

}  // namespace ration::config

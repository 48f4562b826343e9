// The variables by which the field limits GPU memory, and what became of each. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct Settings;
struct Problem;

enum class Standing {
  kHonoured,
  kOverridden,  // something stronger says the same setting
  kLeft,        // to the framework that reads it itself
  kIgnored,     // its value says nothing that we do
  kRefused      // its value cannot be read
};

struct ForeignWord {
  std::string variable, value;
  Standing standing = Standing::kIgnored;
  std::string reason;  // what it sets, or why not
};

std::string_view name_of(Standing standing);

// Call once, when everything of ours has been read: these are below all of it. `framework` names what is loaded into
// the process and reads such variables itself; empty: nothing. `limit_malformed`: ours could not be read, so that
// theirs hold beside it.
void hear_foreign(const char *const *environment, std::string_view framework, bool limit_malformed, Settings &settings,
                  std::vector<Problem> &problems);

}  // namespace ration::config

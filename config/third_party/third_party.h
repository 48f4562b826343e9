// The variables by which other programs limit GPU memory, and what became of each one that is set.
// Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct Settings;
struct Problem;

enum class Disposition {
  kHonoured,
  kOverridden,  // a stronger source says the same setting
  kLeft,        // to the framework that reads it itself
  kIgnored,     // its value changes nothing here
  kRefused      // its value cannot be parsed
};

struct ThirdPartyVariable {
  std::string variable, value;
  Disposition disposition = Disposition::kIgnored;
  std::string reason;  // what it sets, or why it does not

  [[nodiscard]] std::string written() const;  // "NAME=value", one printable line
};

// Which limits of ours could not be parsed, so that third-party ones hold beside them.
struct MalformedLimits {
  bool limit = false;
  bool container_limit = false;
};

std::string_view name_of(Disposition disposition);

bool is_third_party_variable(std::string_view name);

// Call once, after every source of ours has been read: third-party variables rank below all of them.
// `framework` names the library in this process that reads XLA_* and TF_* itself; empty: there is none.
// Design: design/settings.md#other-variables
void import_third_party(const char *const *environment, std::string_view framework, const MalformedLimits &malformed,
                        Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config

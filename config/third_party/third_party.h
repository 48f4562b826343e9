// The environment variables by which other programs limit GPU memory, and what Ration did with each that is set.
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
  kOverridden,  // a stronger source sets the same setting
  kLeft,        // left to the framework that reads it itself
  kIgnored,     // its value changes nothing here
  kRefused      // its value cannot be parsed
};

struct ThirdPartyVariable {
  std::string variable, value;
  Disposition disposition = Disposition::kIgnored;
  std::string reason;  // what the variable sets, or why it sets nothing

  [[nodiscard]] std::string written() const;  // "NAME=value", one printable line
};

// Which of Ration's own limits could not be parsed. For each of these, third-party limits apply in addition.
struct MalformedLimits {
  bool limit = false;
  bool container_limit = false;
};

std::string_view name_of(Disposition disposition);

bool is_third_party_variable(std::string_view name);

// Call once, after every RATION_* source has been read: third-party variables rank below all of them.
// `framework` names the library in this process that reads XLA_* and TF_* itself; empty: there is none.
// Design: design/settings.md#other-variables
void import_third_party(const char *const *environment, std::string_view framework, const MalformedLimits &malformed,
                        Settings &settings, std::vector<Problem> &problems);

}  // namespace ration::config

// The source that a value comes from. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// In order, from weakest to strongest. Locked keys of a system file are ceilings for all sources.
// Design: design/settings.md#sources
enum class Source {
  kDefault,
  kThirdParty,  // an environment variable that another program defines
  kSystemFile,  // config.json of the system folder
  kDropIn,      // conf.d/*.json of the system folder
  kUserFile,
  kNamedFile,  // the file that RATION_CONFIG names
  kEnvironment,
  kFlag,  // an option of `ration run`, passed as an environment variable
};

// The name that `ration env` and the log use.
std::string_view name_of(Source source);
bool is_file(Source source);

struct Origin {
  std::string key, value;
  Source source = Source::kDefault;
  // "PATH:LINE:COLUMN" for a value in a file, "VARIABLE=value" for a third-party variable, empty for a RATION_*
  // variable. "PATH" for a file that is refused as a whole.
  std::string place;
  bool locked = false;
  std::string instead = {};  // what applies instead of a refused value; empty if the value is in force

  // The setting as its source states it: "RATION_LIMIT=8g", "/etc/ration/config.json:3:5: limit=8g". One printable
  // line.
  [[nodiscard]] std::string written() const;
  // The setting as the user gave it: "--limit 8g" for an option of `ration run`, otherwise written().
  [[nodiscard]] std::string as_given() const;
  // The value in force because of this setting: written(), or "none (RATION_GUARANTEE=much is refused)".
  [[nodiscard]] std::string in_force() const;
};

}  // namespace ration::config

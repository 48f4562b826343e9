// Which source a value comes from. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// From weakest to strongest. Locked keys of a system file are ceilings over all of them.
// Design: design/settings.md#sources
enum class Source {
  kDefault,
  kThirdParty,  // a variable of another program
  kSystemFile,  // config.json of the system folder
  kDropIn,      // conf.d/*.json of the system folder
  kUserFile,
  kNamedFile,  // RATION_CONFIG
  kEnvironment,
  kFlag,  // of `ration run`, passed as a variable
};

// As in `ration env` and the log.
std::string_view name_of(Source source);
bool is_file(Source source);

struct Origin {
  std::string key, value;
  Source source = Source::kDefault;
  // "PATH:LINE:COLUMN" of a file, "VARIABLE=value" of a third party; empty for a RATION_* variable.
  // Of a file without a value: it is refused as a whole, "PATH".
  std::string place;
  bool locked = false;
  std::string instead = {};  // what holds instead of the value, which is refused; empty: the value is in force

  // As its source has it: "RATION_LIMIT=8g", "/etc/ration/config.json:3:5: limit=8g". One printable line.
  [[nodiscard]] std::string written() const;
  // The same for the one who gave it: "--limit 8g" of an option of `ration run`.
  [[nodiscard]] std::string as_given() const;
  // What is in force by it: written(), or "none (RATION_GUARANTEE=much is refused)".
  [[nodiscard]] std::string in_force() const;
};

}  // namespace ration::config

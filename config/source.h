// Where the value of a setting comes from. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// From the weakest to the strongest, but for a system file's locked keys, which are ceilings over everything.
enum class Source {
  kDefault,
  kForeign,     // a variable of somebody else's, which the field knows
  kSystemFile,  // config.json of the system folder
  kDropIn,      // conf.d/*.json of the system folder
  kUserFile,
  kNamedFile,  // RATION_CONFIG
  kEnvironment,
  kFlag,  // of `ration run`; travels as a variable
};

// As `ration env` and the log have it.
std::string_view name_of(Source source);
bool is_file(Source source);

struct Origin {
  std::string key, value;
  Source source = Source::kDefault;
  // A file's "PATH:LINE:COLUMN", somebody else's "VARIABLE=value"; empty for a variable of ours.
  std::string place;
  bool locked = false;

  // How it is written where it comes from: "RATION_LIMIT=8g", "/etc/ration/config.json:3:5: limit=8g". One plain line.
  [[nodiscard]] std::string written() const;
};

}  // namespace ration::config

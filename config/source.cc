#include "config/source.h"

#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::config {

std::string_view name_of(Source source) {
  switch (source) {
    case Source::kDefault:
      return "default";
    case Source::kThirdParty:
      return "foreign";
    case Source::kSystemFile:
      return "system file";
    case Source::kDropIn:
      return "conf.d file";
    case Source::kUserFile:
      return "user file";
    case Source::kNamedFile:
      return "named file";
    case Source::kEnvironment:
      return "environment";
    case Source::kFlag:
      return "flag";
  }
  return "default";
}

bool is_file(Source source) {
  return source >= Source::kSystemFile && source <= Source::kNamedFile;
}

std::string Origin::written() const {
  if (source == Source::kThirdParty) {
    return shown(place);
  }
  std::string text;
  if (is_file(source)) {
    text = printable(place) + ": " + key;
  } else {
    const Option *option = option_of_key(key);
    text = option == nullptr ? shown(key) : std::string(option->variable);
  }
  return text + "=" + shown(value);
}

}  // namespace ration::config

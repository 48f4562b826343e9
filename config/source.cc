#include "config/source.h"

#include <algorithm>

#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::config {

std::string_view name_of(Source source) {
  static constexpr std::string_view kNames[] = {"default",   "foreign",    "system file", "conf.d file",
                                                "user file", "named file", "environment", "flag"};
  return kNames[static_cast<std::size_t>(source)];
}

bool is_file(Source source) {
  return source >= Source::kSystemFile && source <= Source::kNamedFile;
}

std::string Origin::written() const {
  if (source == Source::kThirdParty) {
    const std::size_t equals = std::min(place.find('='), place.size());
    std::string named = shown(place.substr(0, equals));
    if (equals < place.size()) {
      named += '=';
      named += shown(place.substr(equals + 1));
    }
    return named;
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

std::string Origin::as_given() const {
  const Option *option = source == Source::kFlag ? option_of_key(key) : nullptr;
  return option == nullptr || option->flag.empty() ? written() : std::string(option->flag) + " " + shown(value);
}

std::string Origin::in_force() const {
  if (instead.empty()) {
    return written();
  }
  const bool is_whole_file = is_file(source) && value.empty();
  return instead + " (" + (is_whole_file ? printable(place) : written()) + " is refused)";
}

}  // namespace ration::config

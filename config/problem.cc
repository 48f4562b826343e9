#include "config/problem.h"

#include "config/wording.h"

namespace ration::config {

Problem problem_of(std::string_view key, std::string_view variable, std::string_view value, std::string sentence,
                   std::string_view instead, bool fatal_for_cli) {
  std::string line = shown(variable);
  line += '=';
  line += shown(value);
  line += ": ";
  line += sentence;
  line += instead;
  return {std::string(key), std::move(line), fatal_for_cli, std::move(sentence)};
}

}  // namespace ration::config

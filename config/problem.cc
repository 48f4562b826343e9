#include "config/problem.h"

#include "config/values/quotes.h"

namespace ration::config {

Problem problem_of(std::string_view key, std::string_view variable, std::string_view value, std::string sentence,
                   std::string_view instead, bool fatal_for_cli) {
  Problem problem = problem_at(key, shown(variable) + "=" + shown(value), std::move(sentence), instead, fatal_for_cli);
  problem.in_variable = true;
  return problem;
}

Problem problem_at(std::string_view key, std::string written, std::string sentence, std::string_view instead,
                   bool fatal_for_cli) {
  sentence += likely_cause(written + " " + sentence);
  std::string line = written + ": " + sentence;
  line += instead;
  return {std::string(key), std::move(line), fatal_for_cli, std::move(sentence), std::move(written), false};
}

}  // namespace ration::config

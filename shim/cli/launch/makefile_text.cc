#include "cli/launch/makefile_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "cli/launch/command_walk.h"
#include "cli/launch/text_walk.h"

namespace ration::cli {

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kAutomatic = "@<^*?+|%";  // $@, $<: files
constexpr std::size_t kMostFiles = 16;
constexpr int kDeepest = 8;  // variables within one another

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char each) {
    return std::isalnum(each) != 0 || each == '_' || each == '-' || each == '.';
  });
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin));
}

// A name without a value stands for itself: $(CC).
std::string replaced(std::string_view line, const Values &values, const EnvironmentBlock &environment, int depth = 0) {
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char next = at + 1 < line.size() ? line[at + 1] : '\0';
    if (line[at] != '$' || next == '\0') {
      out += line[at];
    } else if (next == '$') {
      out += line[at++];
    } else if (kAutomatic.find(next) != std::string_view::npos) {
      out += "file";
      ++at;
    } else {
      const bool is_long = next == '(' || next == '{';
      const std::size_t end = is_long ? line.find(next == '(' ? ')' : '}', at) : at + 2;
      const std::string name(line.substr(at + (is_long ? 2 : 1), end - at - (is_long ? 2 : 1)));
      if (end == std::string_view::npos || !is_name(name) || depth > kDeepest) {
        out += line[at];  // a function
        continue;
      }
      const auto known = values.find(name);
      const std::string exported = environment.value(name);
      out += name == kPreload        ? "${LD_PRELOAD}"
             : known != values.end() ? replaced(known->second, values, environment, depth + 1)
             : exported.empty()      ? name
                                     : exported;
      at = is_long ? end : end - 1;
    }
  }
  return out;
}

// NAME = VALUE, with any of make's signs. False if the line is no assignment, or one that programs may see.
bool take_assignment(const std::string &line, Values &values) {
  const std::size_t equals = line.find('=');
  if (line.starts_with('\t') || equals == std::string::npos) {
    return false;
  }
  const std::string before = line.substr(0, equals);
  const std::string name = trimmed(before.substr(0, before.find_last_not_of(":?+!") + 1));
  if (!is_name(name) || name == kPreload || name.starts_with("RATION_")) {
    return false;
  }
  std::string &value = values[name];
  value = (before.back() == '+' ? value + " " : "") + trimmed(line.substr(equals + 1));
  return true;
}

struct Rule {
  std::string head;  // TARGETS: PREREQUISITES; empty: the lines count in any case
  std::vector<std::string> lines;
};

std::vector<std::string> words_of(const std::string &text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

// export NAME := VALUE as export NAME=VALUE.
std::string as_shell_writes(const std::string &line) {
  const std::size_t equals = std::min(line.find('='), line.size());
  const std::string name = trimmed(std::string_view(line).substr(0, line.find_last_not_of(" \t:?+!", equals - 1) + 1));
  if (equals == line.size() || equals == 0 || !is_name(name.substr(name.find_last_of(' ') + 1))) {
    return line;
  }
  const char sign = line[equals - 1];
  const std::string self = sign == '+' || sign == '?' ? "${" + name.substr(name.find_last_of(' ') + 1) + "} " : "";
  return name + "=\"" + self + trimmed(line.substr(equals + 1)) + "\"";
}

// A line that is no assignment to a variable of make's own: the head of a rule, perhaps with a first command after it,
// or a directive.
void add_line(const std::string &line, std::vector<Rule> &rules) {
  const std::size_t equals = line.find('=');
  const std::size_t colon = line.find(':');
  if (colon >= line.size() || colon + 1 >= equals) {
    rules.front().lines.push_back(as_shell_writes(line));  // also NAME := VALUE
    return;
  }
  const std::size_t end = std::min(line.find(';', colon), line.size());
  rules.push_back({line.substr(0, end), {}});
  rules.back().lines.push_back(equals < end ? as_shell_writes(line.substr(colon + 1))  // TARGET: NAME = VALUE
                                            : line.substr(std::min(end + 1, line.size())));
}

// The rules that the goals need, as far as that is known.
std::vector<Rule> rules_for(std::vector<std::string> goals, const std::string &default_goal,
                            const std::vector<Rule> &rules) {
  std::multimap<std::string, std::size_t> of_target;
  std::set<std::size_t> wanted;
  const auto want = [&](std::size_t rule) {
    const std::string &head = rules[rule].head;
    if (wanted.insert(rule).second && !head.empty() && !head.starts_with('.')) {
      const std::vector<std::string> needed = words_of(head.substr(head.find(':') + 1));
      goals.insert(goals.end(), needed.begin(), needed.end());
    }
  };
  std::erase_if(goals,
                [](const std::string &goal) { return goal.find_first_not_of("0123456789") == goal.npos; });  // -j 4
  if (goals.empty()) {
    goals = words_of(default_goal);
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string &head = rules[i].head;
    const std::string targets = head.substr(0, head.find(':'));
    for (const std::string &target : words_of(targets)) {
      of_target.emplace(target, i);
      if (goals.empty() && !target.starts_with('.') && target.find('%') == std::string::npos) {
        goals.push_back(target);
      }
    }
    if (head.empty() || targets.find_first_of("%$(") != std::string::npos || trimmed(targets).starts_with('.')) {
      want(i);
    }
  }
  for (std::size_t i = 0; i < goals.size(); ++i) {
    const auto [first, last] = of_target.equal_range(std::string(goals[i]));
    std::for_each(first, last, [&](const auto &each) { want(each.second); });
  }
  std::vector<Rule> found;
  std::transform(wanted.begin(), wanted.end(), std::back_inserter(found), [&](std::size_t i) { return rules[i]; });
  return found;
}

}  // namespace

std::vector<std::string> lines_of_makefiles(MakeCall call, const WalkState &state) {
  Values values = {{"MAKE", "make"}};
  Values given;
  for (const std::string &each : call.assignments) {
    take_assignment(each, given);
  }
  std::vector<Rule> rules = {{{}, {}}};  // the first one: what belongs to no target
  for (std::size_t i = 0; i < std::min(call.files.size(), kMostFiles); ++i) {
    std::istringstream text(text_of_file(state.path_from_here(call.files[i]).value_or(""), *state.budget));
    for (std::string line; std::getline(text, line);) {
      for (std::string more; line.ends_with('\\') && std::getline(text, more);) {
        line.back() = ' ';
        line += more;
      }
      std::istringstream words(line);
      std::string first;
      words >> first;
      if (first == "include" || first == "-include" || first == "sinclude") {
        for (std::string file; words >> file;) {
          call.files.push_back(replaced(file, values, state.walk.environment));
        }
      } else if (line.starts_with('\t')) {
        rules.back().lines.push_back(line);
      } else if (!take_assignment(line, values)) {
        add_line(line, rules);
      }
    }
  }
  for (const auto &[name, value] : given) {
    values[name] = value;
  }
  const auto with_values = [&](const std::string &line) { return replaced(line, values, state.walk.environment); };
  if (const std::string shell = with_values(values["SHELL"]); !shell.empty() && !is_shell(shell)) {
    rules.front().lines.push_back(shell + " -c :");  // make starts each line with it
  }
  for (Rule &rule : rules) {
    rule.head = with_values(rule.head);
  }
  std::vector<std::string> lines;
  for (const Rule &rule : rules_for(std::move(call.goals), with_values(values[".DEFAULT_GOAL"]), rules)) {
    for (const std::string &line : rule.lines) {
      lines.push_back(with_values(line.substr(std::min(line.find_first_not_of("\t @-+"), line.size()))));
    }
  }
  return lines;
}

}  // namespace ration::cli

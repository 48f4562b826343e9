#include "cli/launch/makefile_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <string_view>

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
      out += known != values.end() ? replaced(known->second, values, environment, depth + 1)
             : exported.empty()    ? name
                                   : exported;
      at = is_long ? end : end - 1;
    }
  }
  return out;
}

// NAME = VALUE, with any of make's signs. False if the line is no assignment, or one that programs may see.
bool take_assignment(const std::string &line, Values &values, const Values &fixed) {
  const std::size_t equals = line.find('=');
  if (line.starts_with('\t') || equals == std::string::npos) {
    return false;
  }
  const std::string before = line.substr(0, equals);
  const std::string name = trimmed(before.substr(0, before.find_last_not_of(":?+!") + 1));
  if (!is_name(name) || name == kPreload || name.starts_with("RATION_")) {
    return false;
  }
  if (fixed.contains(name)) {
    return true;
  }
  std::string &value = values[name];
  value = (before.back() == '+' ? value + " " : "") + trimmed(line.substr(equals + 1));
  return true;
}

}  // namespace

std::vector<std::string> lines_of_makefiles(std::vector<std::string> files, const std::vector<std::string> &given,
                                            const WalkState &state) {
  Values values{{"MAKE", "make"}};
  for (const std::string &each : given) {
    values[each.substr(0, each.find('='))] = each.substr(each.find('=') + 1);
  }
  const Values fixed = values;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) {
    std::istringstream text(text_of_file(state.path_from_here(files[i]).value_or(""), *state.budget));
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
          files.push_back(replaced(file, values, state.walk.environment));
        }
      } else if (!take_assignment(line, values, fixed)) {
        lines.push_back(line.substr(std::min(line.find_first_not_of("\t@-+"), line.size())));
      }
    }
  }
  for (std::string &line : lines) {
    line = replaced(line, values, state.walk.environment);
  }
  return lines;
}

}  // namespace ration::cli

#include "cli/run/command_line.h"

#include <algorithm>

#include "config/options.h"
#include "config/wording.h"

namespace ration::cli {

namespace {

bool takes_value(const std::string &flag) {
  const auto options = config::options();
  return flag == "--sim" ||
         std::any_of(options.begin(), options.end(), [&](const auto &each) { return each.flag == flag; });
}

// Only "=" joins a value to it: the word behind it may be the command.
bool value_may_lack(const std::string &flag) {
  return flag == "--group-tree";
}

bool is_help(const std::string &flag) {
  return flag == "--help" || flag == "-h";
}

std::string complain_of_flag(const std::string &flag) {
  std::string key = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  std::string line = config::shown(flag);
  if (const config::Option *option = config::option_of_key(key); option != nullptr && option->flag.empty()) {
    line += " is no option of `ration run`; set the variable ";
    line += option->variable;
  } else {
    line += " is no option; the nearest is ";
    line += config::nearest_flag(flag);
    line += " (`ration run --help` lists them)";
  }
  return line;
}

}  // namespace

std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments) {
  SplitLine line;
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (*at == "--") {
      line.command.assign(at + 1, arguments.end());
      break;
    }
    if (at->empty() || at->front() != '-') {
      line.command.assign(at, arguments.end());
      break;
    }
    const std::size_t equals = at->find('=');
    const std::string flag = at->substr(0, equals);
    if (is_help(*at) || value_may_lack(*at)) {
      line.own.push_back(*at);
      continue;
    }
    if (!takes_value(flag)) {
      return complain_of_flag(flag);
    }
    if (equals == std::string::npos && (at + 1 == arguments.end() || *(at + 1) == "--")) {
      return flag + " needs a value behind it";
    }
    const std::string value = equals == std::string::npos ? *++at : at->substr(equals + 1);
    if (value.empty()) {
      return flag + " has an empty value; leave it out for the default";
    }
    line.own.push_back(flag + "=" + value);
  }
  return line;
}

}  // namespace ration::cli

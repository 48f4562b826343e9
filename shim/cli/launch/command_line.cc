#include "cli/launch/command_line.h"

#include <algorithm>
#include <chrono>

#include "cli/launch/taught_words.h"
#include "config/options.h"
#include "config/values/limit_map.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

bool is_among(const std::vector<std::string_view> &flags, const std::string &flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

bool takes_value(const std::string &flag, const VerbFlags &more) {
  const auto options = config::options();
  return flag == "--sim" || is_among(more.with_value, flag) ||
         std::any_of(options.begin(), options.end(), [&](const auto &each) { return each.flag == flag; });
}

bool stands_alone(const std::string &word, const VerbFlags &more) {
  return word == "--help" || word == "--help-all" || word == "-h" || word == "--group-tree" ||
         is_among(more.alone, word);
}

// The options of `ration run` that no other verb accepts.
constexpr std::string_view kOfRunAlone[] = {"--wait", "--summary", "-q", "--quiet", "-v", "--verbose", "--embed-names"};

// True if `word` is the value of `flag`, whose value is optional: only a word that can be nothing else counts.
bool is_value_of(const std::string &flag, const std::string &word) {
  std::chrono::milliseconds duration{};
  config::LimitMap limit;
  return (flag == "--wait" && config::read_milliseconds(word, duration).empty()) ||
         (flag == "--group-tree" && config::parse_limit(word, limit).empty());
}

// True if --log stands without its optional file: the next word is its file unless it is an option.
bool lacks_file(const std::string &flag, const std::vector<std::string> &arguments, std::size_t next) {
  return flag == "--log" && (next == arguments.size() || (arguments[next].starts_with('-') && arguments[next] != "-"));
}

std::string unknown_flag(const std::string &flag, const VerbFlags &more) {
  std::string key = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string shown = config::shown(flag);
  if (std::find(std::begin(kOfRunAlone), std::end(kOfRunAlone), flag) != std::end(kOfRunAlone)) {
    return shown + " is an option of `ration run` alone";
  }
  if (const config::Option *option = config::option_of_key(key);
      option != nullptr && option->flag.empty() && option->scope != config::Scope::kInternal) {
    return shown + " is not an option here; set the variable " + std::string(option->variable);
  }
  for (const std::string &word : {std::string(more.verb) + " " + flag, flag}) {
    if (const std::string_view ours = ours_for(word); !ours.empty()) {
      return shown + " is not an option; ours is " + std::string(ours);
    }
  }
  std::vector<std::string_view> flags = {"--sim", "--help"};
  for (const config::Option &option : config::options()) {
    if (!option.flag.empty()) {
      flags.push_back(option.flag);
    }
  }
  flags.insert(flags.end(), more.with_value.begin(), more.with_value.end());
  flags.insert(flags.end(), more.alone.begin(), more.alone.end());
  return shown + " is not an option" +
         config::near_or_list(config::near_word(flag, flags), "ration help " + std::string(more.verb));
}

}  // namespace

VerbFlags flags_of_run() {
  return {{"--wait", "--summary"},
          {"--wait", "-q", "--quiet", "-v", "--verbose", "--force", "--embed-names", "--json"}};
}

std::variant<SplitLine, std::string> split_line(const std::vector<std::string> &arguments, const VerbFlags &more) {
  SplitLine line;
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (*at == "--" || !at->starts_with('-')) {
      line.command.assign(at + (*at == "--" ? 1 : 0), arguments.end());
      break;
    }
    if (stands_alone(*at, more)) {
      const bool has_value = at + 1 != arguments.end() && is_value_of(*at, *(at + 1));
      line.own.push_back(has_value ? *at + "=" + *(at + 1) : *at);
      at += has_value ? 1 : 0;
      continue;
    }
    const std::size_t equals = at->find('=');
    const std::string flag = at->substr(0, equals);
    if (!takes_value(flag, more) && stands_alone(flag, more)) {
      return flag + ": takes no value";
    }
    if (!takes_value(flag, more)) {
      return unknown_flag(flag, more);
    }
    if (equals == std::string::npos &&
        lacks_file(flag, arguments, static_cast<std::size_t>(at + 1 - arguments.begin()))) {
      line.own.push_back(flag);
      continue;
    }
    if (equals == std::string::npos && (at + 1 == arguments.end() || *(at + 1) == "--")) {
      return flag + " needs a value";
    }
    const std::string value = equals == std::string::npos ? *++at : at->substr(equals + 1);
    if (value.empty()) {
      return flag + " has an empty value; give it one, or leave the option out";
    }
    line.own.push_back(flag + "=" + value);
  }
  return line;
}

}  // namespace ration::cli

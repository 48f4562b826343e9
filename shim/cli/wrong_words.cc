#include "cli/wrong_words.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "cli/launch/environment_block.h"
#include "cli/launch/program.h"
#include "cli/launch/taught_words.h"
#include "config/options.h"
#include "config/settings.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr const char *kAfterDashes = "; write a command after --, and see `ration report` for a log";
constexpr const char *kLimitOfSet = "; to set a limit: ration set GROUP|PID --limit SIZE";

bool is_option(const std::string &word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

// The options that `ration help` shows; those for our own use have no group.
std::vector<std::string> names_of_options(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options()) {
    if (!option->get_group().empty() && !option->get_positional()) {
      for (const std::string &name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

std::string near_among(const std::string &word, const std::vector<std::string> &names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(config::near_word(word, views));
}

// True if `ours` can be suggested: it begins with an option of the verb, or with no option at all.
bool has_option(const CLI::App &app, std::string_view ours) {
  const std::string name(ours.substr(0, ours.find(' ')));
  return !ours.empty() && (name[0] != '-' || app.get_option_no_throw(name) != nullptr);
}

std::string unknown_option(const CLI::App &app, const std::string &help, const std::string &option) {
  for (const std::string &word : {app.get_name() + " " + option, option}) {
    if (const std::string_view ours = ours_for(word); has_option(app, ours)) {
      return config::shown(option) + " is not an option; ours is " + std::string(ours);
    }
  }
  return config::shown(option) + " is not an option" +
         config::near_or_list(near_among(option, names_of_options(app)), help);
}

// The first word that looks like an option but is none; empty if there is none.
std::string first_unknown_option(const CLI::App &app, const std::vector<std::string> &words, std::size_t from) {
  for (std::size_t i = from; i < words.size() && words[i] != "--"; ++i) {
    std::string name = words[i].substr(0, words[i].find('='));
    if (is_option(name) && app.get_option_no_throw(name) == nullptr) {
      return name;
    }
  }
  return {};
}

// The option at which the parser stopped because no value followed it.
const CLI::Option *option_without_value(const CLI::App &verb, const std::vector<std::string> &words) {
  std::map<const CLI::Option *, std::size_t> seen;
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const CLI::Option *option =
        is_option(words[i]) ? verb.get_option_no_throw(words[i].substr(0, words[i].find('='))) : nullptr;
    if (option != nullptr && option->get_items_expected_min() > 0 && ++seen[option] > option->count()) {
      return option;
    }
  }
  return nullptr;
}

std::string mismatch(const CLI::App &verb, const std::vector<std::string> &words) {
  const CLI::Option *option = option_without_value(verb, words);
  return option != nullptr ? option->get_name() + " needs a value" : "";
}

std::string unmet_requirement(const CLI::App &verb) {
  for (const CLI::Option *option : verb.get_options()) {
    const bool is_given = option->count() > 0;
    if (option->get_required() && !is_given) {
      return option->get_name() + " is required";
    }
    for (const CLI::Option *other : option->get_needs()) {
      if (is_given && other->count() == 0) {
        return option->get_name() + " requires " + other->get_name();
      }
    }
    for (const CLI::Option *other : option->get_excludes()) {
      if (is_given && other->count() > 0) {
        return option->get_name() + " cannot be combined with " + other->get_name();
      }
    }
  }
  return {};
}

}  // namespace

std::string unknown_verb(const CLI::App &app, const std::string &word) {
  std::vector<std::string> names;
  for (const CLI::App *verb : app.get_subcommands([](const CLI::App *) { return true; })) {
    names.push_back(verb->get_name());
  }
  names.emplace_back("help");
  if (const std::string_view ours = word.starts_with('-') ? "" : ours_for(word); !ours.empty()) {
    return "unknown verb " + config::in_quotes(word) + "; ours is " + std::string(ours);
  }
  const std::string near = near_among(word, names);
  const std::string search_path = EnvironmentBlock(config::process_environment()).value("PATH");
  if (near.empty() && (word.find('/') != std::string::npos || inspect_program(word, search_path).exit_status == 0)) {
    return "unknown verb " + config::in_quotes(word) + "; to run that program write ration run -- " +
           config::shown(word);
  }
  return "unknown verb " + config::in_quotes(word) + config::near_or_list(near, "ration help");
}

std::string wrong_words(const CLI::App &app, const std::vector<std::string> &words, const CLI::ParseError &error) {
  if (words.empty()) {
    return error.what();
  }
  if (is_option(words[0])) {
    const std::string unknown = first_unknown_option(app, words, 0);
    return unknown.empty() ? error.what() : unknown_option(app, "ration help", unknown);
  }
  const auto verbs = app.get_subcommands([&](const CLI::App *each) { return each->get_name() == words[0]; });
  if (verbs.empty()) {
    return unknown_verb(app, words[0]);
  }
  const CLI::App *verb = verbs.front();
  const std::string begin = words[0] + ": ";
  const std::string help = "ration help " + words[0];
  if (const std::string unknown = first_unknown_option(*verb, words, 1); !unknown.empty()) {
    return begin + unknown_option(*verb, help, unknown);
  }
  if (dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr) {
    std::vector<std::string> extras = verb->remaining();
    extras = extras.empty() ? app.remaining() : extras;  // words after -- belong to the command
    return begin + (extras.empty() ? error.what()
                                   : "unexpected argument " + config::in_quotes(extras.front()) + " (`" + help + "`)" +
                                         (words[0] == "doctor" ? kAfterDashes
                                          : words[0] == "set"  ? kLimitOfSet
                                                               : ""));
  }
  std::string said;
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error) != nullptr) {
    said = mismatch(*verb, words);
  } else if (dynamic_cast<const CLI::RequiredError *>(&error) != nullptr ||
             dynamic_cast<const CLI::RequiresError *>(&error) != nullptr ||
             dynamic_cast<const CLI::ExcludesError *>(&error) != nullptr) {
    said = unmet_requirement(*verb);
  }
  return begin + (said.empty() ? error.what() : said);
}

}  // namespace ration::cli

#include "cli/wrong_words.h"

#include <algorithm>
#include <string_view>

#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

bool is_option(const std::string &word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

// Those that `ration help` shows: options for ourselves have no group.
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

std::string unknown_option(const CLI::App &app, const std::string &help, const std::string &option) {
  return config::shown(option) + " is not an option" +
         config::near_or_list(near_among(option, names_of_options(app)), help);
}

// The first word that names no option. Empty: there is none.
std::string first_unknown_option(const CLI::App &app, const std::vector<std::string> &words, std::size_t from) {
  for (std::size_t i = from; i < words.size() && words[i] != "--"; ++i) {
    std::string name = words[i].substr(0, words[i].find('='));
    if (is_option(name) && app.get_option_no_throw(name) == nullptr) {
      return name;
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
  if (word == "version") {
    return "unknown verb \"version\"; `ration --version` prints it";
  }
  return "unknown verb " + config::in_quotes(word) + config::near_or_list(near_among(word, names), "ration help");
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
    extras = extras.empty() ? app.remaining() : extras;  // what stands behind -- is the command's own
    return begin + (extras.empty() ? error.what()
                                   : config::in_quotes(extras.front()) + " is one argument too many (`" + help + "`)");
  }
  std::string said = error.what();
  constexpr std::string_view kNotConverted = "Could not convert: ";
  if (said.starts_with(kNotConverted)) {
    said = said.substr(kNotConverted.size());
    const std::size_t equals = said.find(" = ");
    const std::string option = said.substr(0, equals);
    said = option + " " + config::shown(said.substr(std::min(equals, said.size() - 3) + 3)) + ": it must be " +
           (option == "--pid" ? "the number of a process" : "a number of seconds; write for example 5");
  } else if (dynamic_cast<const CLI::ValidationError *>(&error) != nullptr && said.find(": ") != std::string::npos &&
             said.ends_with("it must be a number from 1 to 1000000")) {
    said.replace(said.find(": "), 2, " ");
  }
  if (const std::size_t lacking = said.find(": 1 required "); lacking != std::string::npos) {
    said = said.substr(0, lacking) + " needs a value";
  }
  if (const std::size_t twice = said.find(": At Most 1 required"); twice != std::string::npos) {
    said = said.substr(0, twice) + ": given more than once";
  }
  return begin + said;
}

}  // namespace ration::cli

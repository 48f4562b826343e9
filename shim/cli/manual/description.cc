#include "cli/manual/description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace ration::cli {
namespace {

using Document = nlohmann::ordered_json;

Document described_option(const CLI::Option &option) {
  const bool takes_value = option.get_items_expected_max() > 0;
  std::vector<std::string> excluded;
  for (const CLI::Option *other : option.get_excludes()) {
    excluded.push_back(dashed_names(*other).back());
  }
  std::sort(excluded.begin(), excluded.end());
  return {{"names", dashed_names(option)},
          {"placeholder", takes_value ? Document(option.get_type_name()) : Document(nullptr)},
          {"value_is_optional", takes_value && option.get_expected_min() == 0},
          {"repeats", repeats(option)},
          {"required", option.get_required()},
          {"excludes", excluded},
          {"text", option.get_description()}};
}

Document described_argument(const CLI::Option &option) {
  return {{"name", option.get_name(true)},
          {"placeholder", option.get_type_name()},
          {"required", option.get_required()},
          {"repeats", repeats(option)},
          {"text", option.get_description()}};
}

// Describes the application without the options that are not meant for people: those without a group.
Document described_app(const CLI::App &app) {
  Document options = Document::array();
  Document arguments = Document::array();
  for (const CLI::Option *option : app.get_options({})) {
    if (option->get_group().empty()) {
      continue;
    }
    if (option->get_positional()) {
      arguments.push_back(described_argument(*option));
    } else {
      options.push_back(described_option(*option));
    }
  }
  return {{"name", app.get_name()},
          {"text", app.get_description()},
          {"footer", app.get_footer()},
          {"options", options},
          {"arguments", arguments}};
}

}  // namespace

std::vector<std::string> dashed_names(const CLI::Option &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string &name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

bool repeats(const CLI::Option &option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

std::string description_of(const CLI::App &app, const std::function<CommandBegins(const std::string &verb)> &begins) {
  Document document = {{"schema", "ration.command/1"}, {"version", RATION_VERSION}};
  document.update(described_app(app));
  document["verbs"] = Document::array();
  for (const CLI::App *verb : app.get_subcommands([](const CLI::App *) { return true; })) {
    document["verbs"].push_back(described_app(*verb));
    const CommandBegins where = begins(verb->get_name());
    document["verbs"].back()["command_begins"] = where == CommandBegins::kNowhere       ? Document(nullptr)
                                                 : where == CommandBegins::kAtFirstWord ? Document("first word")
                                                                                        : Document("after --");
  }
  return document.dump(1);
}

}  // namespace ration::cli

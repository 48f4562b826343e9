// Every source in its order, and of each setting the value that holds. Layer: config.
#include <algorithm>

#include "config/flag_marks.h"
#include "config/groups.h"
#include "config/options.h"
#include "config/settings_sources.h"
#include "config/surroundings.h"
#include "config/wording.h"

namespace ration::config {

namespace {

constexpr std::string_view kPrefix = "RATION_";

// A limit, below which others may hold as well: the smallest does.
bool is_ceiling(const Option &option) {
  return option.effect == Effect::kLimits;
}

void state_in(LimitMap &items, const std::string &written) {
  for (LimitItem &item : items) {
    if (item.stated.empty()) {
      item.stated = written;
    }
  }
}

// Every limit that was just read says where it comes from.
void state(Settings &settings, const std::string &written) {
  state_in(settings.limit, written);
  state_in(settings.stray_group_limit, written);
  for (Settings::Group &group : settings.groups) {
    state_in(group.limit, written);
  }
}

class SettingsReader {
 public:
  explicit SettingsReader(const Surroundings &from) : from_(from) {}

  Settings read(std::vector<Problem> &problems) {
    said_ = variables_said(from_);
    decide(*option_of_key("disable"));
    if (settings_.disabled) {  // inert means silent, too
      return std::move(settings_);
    }
    decide(*option_of_key("config"));
    FilesSaid files = files_said(from_, said_, found_);
    settings_.limit_in_doubt = settings_.limit_in_doubt || files.in_doubt;
    settings_.files = std::move(files.there);
    for (const Option &option : options()) {
      if (option.key != "disable" && option.key != "config") {
        decide(option);
      }
    }
    settle_groups(settings_, found_);
    const bool limit_malformed = std::any_of(
        found_.begin(), found_.end(), [](const Problem &each) { return each.key == "limit" && each.fatal_for_cli; });
    import_third_party(from_.environment, from_.framework, limit_malformed, settings_, found_);
    note_unknown_names();
    note_unbuilt();
    in_order_of_table(settings_.origins);
    problems.insert(problems.end(), found_.begin(), found_.end());
    return std::move(settings_);
  }

 private:
  static void in_order_of_table(std::vector<Origin> &origins) {
    std::stable_sort(origins.begin(), origins.end(), [](const Origin &a, const Origin &b) {
      return option_of_key(a.key) < option_of_key(b.key);  // the table is one array
    });
  }

  void decide(const Option &option) {
    std::vector<const Statement *> said;  // the strongest first
    for (const Statement &each : said_) {
      if (each.option == &option) {
        said.push_back(&each);
      }
    }
    if (!said.empty()) {
      is_ceiling(option) ? decide_ceiling(said) : decide_value(option, std::move(said));
    }
  }

  // The strongest, beside it all that a system file locks; where it cannot be read, all others.
  void decide_ceiling(const std::vector<const Statement *> &said) {
    const bool good = hold(*said.front(), settings_);
    for (std::size_t i = 1; i < said.size(); ++i) {
      if (good && !said[i]->origin.locked) {
        continue;
      }
      Settings beside;
      hold(*said[i], beside);
      merge(beside);
    }
  }

  void merge(const Settings &beside) {
    settings_.limit.insert(settings_.limit.end(), beside.limit.begin(), beside.limit.end());
    if (beside.reserve) {
      settings_.more_reserves.push_back(*beside.reserve);
    }
    hold_groups_of(beside, settings_);
  }

  // What is locked goes before everything; of the rest the strongest that can be read.
  void decide_value(const Option &option, std::vector<const Statement *> said) {
    const Statement *strongest = said.front();
    std::stable_partition(said.begin(), said.end(), [](const Statement *each) { return each->origin.locked; });
    std::vector<std::pair<const Statement *, std::string>> refused;
    const Statement *holds = nullptr;
    for (const Statement *each : said) {
      std::string wrong = read_into(settings_, *each);
      const bool tightens = option.effect == Effect::kTightens;  // then no weaker one is asked
      if (wrong.empty() || tightens) {
        settings_.origins.push_back(each->origin);
      }
      if (wrong.empty()) {
        holds = each;
        break;
      }
      refused.emplace_back(each, std::move(wrong));
      if (tightens) {
        break;
      }
    }
    for (auto &[statement, wrong] : refused) {
      refuse(*statement, std::move(wrong), holds);
    }
    if (holds != nullptr && holds->origin.locked && strongest->origin.value != holds->origin.value) {
      found_.push_back(problem_at(option.key, strongest->origin.written(), "a system file locks this setting",
                                  "; " + holds->origin.written() + " holds", false));
    }
  }

  // True where it can be read. Of what cannot, `settings` has as much as could be.
  bool hold(const Statement &statement, Settings &settings) {
    settings_.origins.push_back(statement.origin);
    std::string wrong = read_into(settings, statement);
    state(settings, statement.origin.written());
    for (const std::string &value : statement.again) {
      Settings other;
      (void)(value.empty() ? std::string() : statement.option->read(other, *statement.option, value));
      state(other, statement.origin.written());
      merge(other);
    }
    const bool good = wrong.empty();
    if (!good) {
      refuse(statement, std::move(wrong), nullptr);
    }
    return good;
  }

  static std::string read_into(Settings &settings, const Statement &statement) {
    const Option &option = *statement.option;
    // A contradiction has no value; of a limit both sides hold.
    const bool readable = !statement.origin.value.empty() && (statement.wrong.empty() || is_ceiling(option));
    std::string wrong = readable ? option.read(settings, option, statement.origin.value) : std::string();
    if (!statement.wrong.empty()) {
      return statement.wrong;
    }
    return statement.origin.value.empty() ? "it is empty; unset it, or give it a value" : wrong;
  }

  // What cannot be used as it is written, and what holds instead.
  void refuse(const Statement &statement, std::string sentence, const Statement *holds) {
    const Option &option = *statement.option;
    std::string instead = holds == nullptr ? "; until then the default holds (" + std::string(option.fallback) + ")"
                                           : "; until then " + holds->origin.written() + " holds";
    if (option.key == "charge_context") {
      settings_.charge_context = true;  // the reading under which the program gets less
      instead = "; until then it is charged";
    } else if (option.effect != Effect::kComfort) {
      // Whose limit is in doubt where a group's is, settle_groups knows.
      settings_.limit_in_doubt = settings_.limit_in_doubt || !concerns_groups(option);
      instead = kStrictestHolds;
    }
    Problem problem = problem_at(option.key, statement.origin.written(), std::move(sentence), instead, true);
    problem.in_variable = !is_file(statement.origin.source);
    found_.push_back(std::move(problem));
  }

  void note_unknown_names() {
    for (const char *const *at = from_.environment; *at != nullptr; ++at) {
      const std::string_view entry(*at);
      const std::size_t equals = std::min(entry.find('='), entry.size());
      const std::string_view name = entry.substr(0, equals);
      if (name.substr(0, kPrefix.size()) != kPrefix || option_of_variable(name) != nullptr) {
        continue;
      }
      std::string sentence = "there is no such setting; the nearest is " + std::string(nearest_variable(name));
      if (name.substr(0, 13) == "RATION_LIMIT_") {
        sentence += " (per device: RATION_LIMIT=0=8GiB,GPU-1f2e=50%)";
      }
      const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
      found_.push_back(problem_of(name, name, value, std::move(sentence), "", false));
    }
  }

  void note_unbuilt() {
    for (const Option &option : options()) {
      const Origin *origin = settings_.origin_of(option.key);
      if (origin != nullptr && has_no_effect(option, origin->value)) {
        found_.push_back(
            problem_at(option.key, origin->written(), "this setting is not built yet and has no effect", "", false));
      }
    }
  }

  const Surroundings &from_;
  std::vector<Statement> said_;  // the strongest first
  Settings settings_;
  std::vector<Problem> found_;
};

}  // namespace

Settings read_settings(const Surroundings &surroundings, std::vector<Problem> &problems) {
  return SettingsReader(surroundings).read(problems);
}

std::string complain_of_statement(const Statement &statement) {
  if (!statement.wrong.empty()) {
    return statement.wrong;
  }
  Settings ignored;
  return statement.origin.value.empty() ? "it is empty; leave the key out for the default"
                                        : statement.option->read(ignored, *statement.option, statement.origin.value);
}

Settings read_environment(const char *const *environment, std::vector<Problem> &problems) {
  Surroundings only;
  only.environment = environment;
  return read_settings(only, problems);
}

}  // namespace ration::config

// Reads all sources and resolves the value of each setting. Layer: config.
#include <algorithm>
#include <iterator>

#include "config/flag_marks.h"
#include "config/groups.h"
#include "config/locks.h"
#include "config/options.h"
#include "config/settings_context.h"
#include "config/settings_sources.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

constexpr std::string_view kPrefix = "RATION_";

// True if several values of the option may apply at once; the smallest limit wins.
bool is_ceiling(const Option &option) {
  return option.effect == Effect::kLimits;
}

// Sets the source of every limit that was just parsed. Returns true if one applies to more devices than it names.
bool set_source(Settings &settings, const std::string &written, bool everywhere) {
  bool spread = set_source_of_new(settings.limit, written, everywhere);
  spread = set_source_of_new(settings.stray_group_limit, written, everywhere) || spread;
  spread = set_source_of_new(settings.guarantee, written, everywhere) || spread;
  for (Settings::Group &group : settings.groups) {
    spread = set_source_of_new(group.limit, written, everywhere) || spread;
  }
  return spread;
}

class SettingsReader {
 public:
  explicit SettingsReader(const SettingsContext &from) : from_(from) {}

  Settings read(std::vector<Problem> &problems) {
    statements_ = statements_of_variables(from_);
    resolve(*option_of_key("disable"));
    if (settings_.disabled && is_enforced(from_.system_folder)) {
      settings_.disabled = false;
    }
    if (settings_.disabled) {  // a disabled library prints nothing either
      return std::move(settings_);
    }
    resolve(*option_of_key("config"));
    FilesRead files = statements_of_files(from_, statements_, problems_);
    settings_.limit_in_doubt = settings_.limit_in_doubt || !files.doubtful.empty();
    settings_.files = std::move(files.paths);
    lock_what_locks_need(statements_);
    for (const Option &option : options()) {
      if (option.key != "disable" && option.key != "config") {
        resolve(option);
      }
    }
    resolve_groups(settings_, problems_);
    check_guarantee(settings_, problems_);
    const auto malformed = [&](std::string_view key) {
      return std::any_of(problems_.begin(), problems_.end(),
                         [&](const Problem &each) { return each.key == key && each.fatal_for_cli; });
    };
    import_third_party(from_.environment, from_.framework, {malformed("limit"), malformed("container_limit")},
                       settings_, problems_);
    note_unknown_names();
    add_doubtful(std::move(files));
    in_order_of_table(settings_.origins);
    problems.insert(problems.end(), problems_.begin(), problems_.end());
    return std::move(settings_);
  }

 private:
  static void in_order_of_table(std::vector<Origin> &origins) {
    std::stable_sort(origins.begin(), origins.end(), [](const Origin &a, const Origin &b) {
      return option_of_key(a.key) < option_of_key(b.key);  // all options are in one array, in this order
    });
  }

  // Appends the doubtful files after everything else: what applies instead of them has no precedence.
  void add_doubtful(FilesRead files) {
    for (Origin &each : settings_.origins) {
      if (each.key == "config" && files.is_named_unused) {
        each.instead = "none";
      }
    }
    settings_.origins.insert(settings_.origins.end(), std::make_move_iterator(files.doubtful.begin()),
                             std::make_move_iterator(files.doubtful.end()));
  }

  void resolve(const Option &option) {
    std::vector<const Statement *> statements;  // strongest first
    for (const Statement &each : statements_) {
      if (each.option == &option) {
        statements.push_back(&each);
      }
    }
    if (!statements.empty()) {
      is_ceiling(option) ? resolve_ceiling(statements) : resolve_value(option, std::move(statements));
    }
  }

  // The strongest statement applies, and so does every statement that a system file locks. If the strongest cannot be
  // parsed, all others apply too.
  void resolve_ceiling(const std::vector<const Statement *> &statements) {
    const bool good = apply(*statements.front(), settings_);
    for (std::size_t i = 1; i < statements.size(); ++i) {
      if (good && !statements[i]->origin.locked) {
        continue;
      }
      Settings beside;
      apply(*statements[i], beside);
      merge(beside);
    }
  }

  void merge(const Settings &beside) {
    settings_.limit.insert(settings_.limit.end(), beside.limit.begin(), beside.limit.end());
    if (beside.reserve) {
      settings_.more_reserves.push_back(*beside.reserve);
    }
    merge_groups(beside, settings_);
  }

  // A locked statement wins; otherwise the strongest one that can be parsed.
  void resolve_value(const Option &option, std::vector<const Statement *> statements) {
    const Statement *strongest = statements.front();
    std::stable_partition(statements.begin(), statements.end(),
                          [](const Statement *each) { return each->origin.locked; });
    std::vector<std::pair<const Statement *, std::string>> refused;
    const Statement *holds = nullptr;
    for (const Statement *each : statements) {
      std::string wrong = read_into(settings_, *each);
      const bool tightens = option.effect == Effect::kTightens;  // then weaker statements do not count
      if (wrong.empty() || tightens) {
        settings_.origins.push_back(each->origin);
        settings_.origins.back().instead = wrong.empty() ? "" : kLimitInstead;
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
      const std::string why = holds->needed_by.empty()
                                  ? "a system file locks this setting; " + holds->origin.written() + " holds"
                                  : "a locked setting needs " + holds->origin.key + "=" + shown(holds->origin.value) +
                                        ", which holds; it is " + holds->needed_by;
      problems_.push_back(problem_at(option.key, strongest->origin.as_given(), why, "", false));
    }
  }

  // False: the statement cannot be parsed; `settings` has the items that could be.
  bool apply(const Statement &statement, Settings &settings) {
    settings_.origins.push_back(statement.origin);
    std::string wrong = read_into(settings, statement);
    const bool everywhere = statement.origin.locked && renumbers_devices(from_.environment);
    const bool spread = set_source(settings, statement.origin.written(), everywhere);
    for (const std::string &value : statement.again) {
      Settings other;
      (void)(value.empty() ? std::string() : statement.option->read(other, *statement.option, value));
      (void)set_source(other, statement.origin.written(), everywhere);
      merge(other);
    }
    if (spread) {
      problems_.push_back(problem_at(statement.option->key, statement.origin.written(),
                                     "the locked limit names ordinals, which CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER "
                                     "may have changed; the smallest size holds on every device",
                                     "", false));
    }
    const bool good = wrong.empty();
    if (!good) {
      settings_.origins.back().instead = kLimitInstead;
      if (statement.option->key == "container_limit") {
        doubt_container_limit(statement.origin.value, settings);
      }
      refuse(statement, std::move(wrong), nullptr);
    }
    return good;
  }

  static std::string read_into(Settings &settings, const Statement &statement) {
    const Option &option = *statement.option;
    // A contradiction gives no value. The exception is a limit: both values apply.
    const bool readable = !statement.origin.value.empty() && (statement.wrong.empty() || is_ceiling(option));
    std::string wrong = readable ? option.read(settings, option, statement.origin.value) : std::string();
    if (!statement.wrong.empty()) {
      return statement.wrong;
    }
    return statement.origin.value.empty() ? "it is empty; unset it, or give it a value" : wrong;
  }

  // Reports a statement that cannot be used; `holds` applies instead.
  void refuse(const Statement &statement, std::string sentence, const Statement *holds) {
    const Option &option = *statement.option;
    std::string instead = holds == nullptr ? "; until then the default holds (" + std::string(option.fallback) + ")"
                                           : "; until then " + holds->origin.written() + " holds";
    if (option.key == "charge_context") {
      settings_.charge_context = true;  // the program gets less memory
      settings_.origins.back().instead = "true";
      instead = "; until then it is charged";
    } else if (option.effect != Effect::kComfort) {
      // resolve_groups finds out to whom a malformed group limit applies.
      settings_.limit_in_doubt = settings_.limit_in_doubt || !concerns_groups(option);
      instead = kStrictestHolds;
    }
    Problem problem = problem_at(option.key, statement.origin.written(), std::move(sentence), instead, true);
    problem.in_variable = !is_file(statement.origin.source);
    problems_.push_back(std::move(problem));
  }

  void note_unknown_names() {
    for (const char *const *at = from_.environment; *at != nullptr; ++at) {
      const std::string_view entry(*at);
      const std::size_t equals = std::min(entry.find('='), entry.size());
      const std::string_view name = entry.substr(0, equals);
      if (name.substr(0, kPrefix.size()) != kPrefix || option_of_variable(name) != nullptr) {
        continue;
      }
      std::string sentence = "there is no such setting" + near_or_list(near_variable(name), "ration env");
      if (name.substr(0, 13) == "RATION_LIMIT_") {
        sentence += " (per device: RATION_LIMIT=0=8GiB,GPU-1f2e=50%)";
      }
      const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
      problems_.push_back(problem_of(name, name, value, std::move(sentence), "", false));
    }
  }

  const SettingsContext &from_;
  std::vector<Statement> statements_;  // strongest first
  Settings settings_;
  std::vector<Problem> problems_;
};

}  // namespace

Settings read_settings(const SettingsContext &context, std::vector<Problem> &problems) {
  const std::vector<const char *> environment = environment_of(context);
  SettingsContext whole = context;
  whole.environment = environment.data();
  whole.at_start.clear();
  return SettingsReader(whole).read(problems);
}

std::string error_in_statement(const Statement &statement) {
  if (!statement.wrong.empty()) {
    return statement.wrong;
  }
  Settings ignored;
  return statement.origin.value.empty() ? "it is empty; leave the key out for the default"
                                        : statement.option->read(ignored, *statement.option, statement.origin.value);
}

Settings read_environment(const char *const *environment, std::vector<Problem> &problems) {
  SettingsContext only;
  only.environment = environment;
  return read_settings(only, problems);
}

}  // namespace ration::config

#include "config/settings_sources.h"

#include <iterator>
#include <string_view>
#include <unordered_set>

#include "config/files/small_file.h"
#include "config/flag_marks.h"
#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

// The distinct values of a variable. execve lets a caller pass one name several times; getenv returns the first value.
std::vector<std::string> values_of(std::string_view variable, const char *const *environment) {
  std::vector<std::string> values;
  std::unordered_set<std::string_view> seen;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.substr(0, variable.size()) == variable && entry.substr(variable.size(), 1) == "=") {
      const std::string_view value = entry.substr(variable.size() + 1);
      if (seen.insert(value).second) {
        values.emplace_back(value);
      }
    }
  }
  return values;
}

}  // namespace

std::string first_of(std::string_view variable, const char *const *environment) {
  const std::vector<std::string> values = values_of(variable, environment);
  return values.empty() ? std::string() : values.front();
}

namespace {

// The path of the user's file. A relative path is ignored (XDG Base Directory Specification). Empty: the user has no
// such file.
std::string user_file(const char *const *environment) {
  std::string folder = first_of("XDG_CONFIG_HOME", environment);
  if (folder.empty() || folder.front() != '/') {
    folder = first_of("HOME", environment);
    if (folder.empty() || folder.front() != '/') {
      return {};
    }
    folder += "/.config";
  }
  return folder + "/ration/config.json";
}

std::string drop_in_folder(const SettingsContext &from) {
  return from.system_folder.empty() ? std::string() : from.system_folder + "/" + std::string(kDropInFolder);
}

class FilesReader {
 public:
  FilesReader(const SettingsContext &from, std::vector<Statement> &statements, std::vector<Problem> &problems)
      : from_(from), statements_(statements), problems_(problems) {}

  FilesRead read() {
    const std::string drop_ins = drop_in_folder(from_);
    if (const Folder folder = list_json_files(drop_ins); !drop_ins.empty() && !folder.wrong.empty()) {
      refuse(drop_ins, folder.wrong, drop_ins, Source::kDropIn);
    }
    for (const FilePlace &place : places_of_files(from_)) {
      const bool named = place.source == Source::kNamedFile;
      if (from_.privileged && (named || place.source == Source::kUserFile)) {
        continue;
      }
      if (!read_file(place.path, place.source, place.trust) && named) {
        refuse("RATION_CONFIG=" + place.path, "there is no such file", place.path, place.source);
      }
    }
    return std::move(result_);
  }

 private:
  void refuse(const std::string &written, std::string sentence, const std::string &path, Source source) {
    doubt(path, source, true);
    problems_.push_back(problem_at("config", printable(written), std::move(sentence), kStrictestHolds, true));
  }

  void doubt(const std::string &path, Source source, bool is_unused) {
    result_.doubtful.push_back({"limit", {}, source, path, false, std::string(kLimitInstead)});
    result_.is_named_unused = result_.is_named_unused || (is_unused && source == Source::kNamedFile);
  }

  // False: there is no such file.
  bool read_file(const std::string &path, Source source, Trust trust) {
    const SmallFile file = read_small_file(path, trust);
    if (!file.there) {
      return false;
    }
    result_.paths.push_back(path);
    if (!file.wrong.empty()) {
      refuse(path, file.wrong, path, source);
      return true;
    }
    FileReading reading = read_settings_text(file.text, path, source, &from_.program);
    if (reading.in_doubt) {
      doubt(path, source, reading.statements.empty());
    }
    problems_.insert(problems_.end(), reading.problems.begin(), reading.problems.end());
    // Within a file a later statement is stronger, so the order is reversed.
    statements_.insert(statements_.end(), std::make_move_iterator(reading.statements.rbegin()),
                       std::make_move_iterator(reading.statements.rend()));
    return true;
  }

  const SettingsContext &from_;
  std::vector<Statement> &statements_;
  std::vector<Problem> &problems_;
  FilesRead result_;
};

}  // namespace

std::vector<Statement> statements_of_variables(const SettingsContext &context) {
  const char *const *environment = context.environment;
  const std::string marks = first_of(option_of_key("flags")->variable, environment);
  std::vector<Statement> statements;
  for (const Option &option : options()) {
    std::vector<std::string> values = values_of(option.variable, environment);
    // An empty limit counts, because `X=$UNSET` in a script must not remove a limit; any other empty setting is unset.
    if (values.empty() || (values.size() == 1 && values[0].empty() && option.effect != Effect::kLimits)) {
      continue;
    }
    const Source source = is_marked(marks, option.key, values[0]) ? Source::kFlag : Source::kEnvironment;
    Statement &statement = statements.emplace_back(
        Statement{&option, {std::string(option.key), values[0], source, {}, false}, {}, {}, false, {}});
    if (values.size() > 1) {
      statement.wrong = "the environment gives it a second time, as " + in_quotes(values[1]);
      statement.again.assign(std::make_move_iterator(values.begin() + 1), std::make_move_iterator(values.end()));
    }
    if (context.privileged && (option.values == "FILE" || option.values == "FOLDER")) {
      statement.wrong = "a program with more rights than its user neither reads nor writes files that the user names";
    }
  }
  return statements;
}

std::vector<FilePlace> places_of_files(const SettingsContext &context) {
  std::vector<FilePlace> places;
  const std::vector<const char *> environment = environment_of(context);
  const std::string named = first_of(option_of_key("config")->variable, environment.data());
  if (!named.empty()) {
    places.push_back({named, Source::kNamedFile, Trust::kAnybody});
  }
  if (const std::string path = user_file(environment.data()); !path.empty()) {
    places.push_back({path, Source::kUserFile, Trust::kOwnersOnly});
  }
  if (const std::string folder = drop_in_folder(context); !folder.empty()) {
    const Folder drop_ins = list_json_files(folder);
    for (auto name = drop_ins.names.rbegin(); name != drop_ins.names.rend(); ++name) {
      places.push_back({folder + "/" + *name, Source::kDropIn, Trust::kAnybody});
    }
    places.push_back({context.system_folder + "/config.json", Source::kSystemFile, Trust::kAnybody});
  }
  return places;
}

FilesRead statements_of_files(const SettingsContext &context, std::vector<Statement> &statements,
                              std::vector<Problem> &problems) {
  return FilesReader(context, statements, problems).read();
}

}  // namespace ration::config

#include "config/files/settings_file.h"

#include <algorithm>
#include <unordered_set>

#include "config/files/file_values.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t kMostFileProblems = 8;  // a file of another format has thousands
constexpr std::size_t kMostRules = 256;
constexpr std::size_t kLongestPattern = 1024;
constexpr std::string_view kMatchExample = R"(write, for example, "match": {"exe": "*/python3*", "argv": "*serve*"})";

const JsonNode *child_of(const JsonNode &node, std::string_view key) {
  const auto found =
      std::find_if(node.children.begin(), node.children.end(), [&](const JsonNode &each) { return each.key == key; });
  return found == node.children.end() ? nullptr : &*found;
}

std::string near_key_or_list(std::string_view key) {
  return near_or_list(near_key(key), "ration env");
}

class FileReader {
 public:
  FileReader(const std::string &path, Source source, const ProgramIdentity *program)
      : path_(path), source_(source), program_(program) {}

  FileReading read(std::string_view text) {
    const JsonTree tree = parse_json(text);
    if (!tree.wrong.empty()) {
      refuse(tree.place, tree.wrong);
    } else if (tree.root.kind != Kind::kObject) {
      refuse({}, R"(a settings file must be one object, such as {"limit": "8GiB"})");
    } else {
      once_each(tree.root);
      read_object(tree.root, false);
      for (const JsonNode &each : tree.root.children) {
        if (each.key == "rules") {
          read_rules(each);
        }
      }
    }
    return std::move(reading_);
  }

 private:
  std::string at(const JsonPlace &place) const { return path_ + ":" + place.text(); }
  bool is_of_system() const { return source_ == Source::kSystemFile || source_ == Source::kDropIn; }
  bool may_stand_here(const Option &option) const {
    return option.scope == Scope::kAnywhere || (option.scope == Scope::kSystemFile && is_of_system());
  }

  static bool may_begin_path(char c) { return c == '/' || c == '*' || c == '?' || c == '['; }

  bool has_enough_problems() const { return reading_.problems.size() >= kMostFileProblems; }

  // Reports a wrong structure. What was meant may have been a limit, so the file is in doubt.
  void refuse(const JsonPlace &place, std::string sentence) {
    reading_.in_doubt = true;
    if (has_enough_problems()) {
      return;
    }
    reading_.problems.push_back(problem_at("config", printable(at(place)), std::move(sentence), kStrictestHolds, true));
  }

  // Reports structural keys that occur twice. Duplicate settings are an error of their option (read_member).
  void once_each(const JsonNode &object) {
    std::unordered_set<std::string_view> keys;
    for (const JsonNode &member : object.children) {
      const bool structure = option_of_key(member.key) == nullptr && member.key != "$schema";
      if (structure && !keys.insert(member.key).second) {
        refuse(member.place, in_quotes(member.key) + " appears twice");
      }
    }
  }

  void note(std::string_view key, const JsonPlace &place, std::string sentence) {
    reading_.problems.push_back(
        problem_at(key, printable(at(place)) + ": " + shown(key), std::move(sentence), "", false));
  }

  void read_rules(const JsonNode &rules) {
    if (rules.kind != Kind::kArray || rules.children.size() > kMostRules) {
      refuse(
          rules.place,
          R"(rules must be a list of at most 256, such as "rules": [{"match": {"exe": "*/python3*"}, "limit": "40%"}])");
      return;
    }
    for (const JsonNode &rule : rules.children) {
      const JsonNode *match = child_of(rule, "match");
      once_each(rule);
      if (rule.kind != Kind::kObject || match == nullptr) {
        refuse(rule.place, "a rule is an object with a match; " + std::string(kMatchExample));
      } else if (is_meant(*match)) {
        read_object(rule, true);
      }
    }
  }

  bool is_meant(const JsonNode &match) {
    bool fits = !match.children.empty() && match.kind == Kind::kObject;
    if (!fits) {
      refuse(match.place, "it matches nothing; " + std::string(kMatchExample));
    }
    once_each(match);
    for (const JsonNode &part : match.children) {
      if (part.kind != Kind::kString || part.text.size() > kLongestPattern ||
          (part.key != "exe" && part.key != "argv")) {
        refuse(part.place, in_quotes(part.key) + " is not a pattern of a program; " + std::string(kMatchExample));
        return false;
      }
      if (program_ == nullptr && part.key == "exe" && !part.text.empty() && !may_begin_path(part.text.front())) {
        note(part.key, part.place,
             "the whole path is compared, so it matches nothing; write " + in_quotes("*/" + part.text));
      }
      fits =
          fits && (program_ == nullptr || fits_pattern(part.key == "exe" ? program_->exe : program_->argv, part.text));
    }
    return fits;
  }

  void read_object(const JsonNode &object, bool is_rule) {
    const std::size_t first = reading_.statements.size();
    for (const JsonNode &member : object.children) {
      const bool structure = member.key == "locked" || member.key == (is_rule ? "match" : "rules");
      if (structure || (!is_rule && member.key == "$schema")) {
        continue;
      }
      const Option *option = option_of_key(member.key);
      if (option == nullptr || !may_stand_here(*option)) {
        note_unknown(member, option);
      } else {
        read_member(*option, member, first, is_rule);
      }
    }
    for (const JsonNode &member : object.children) {
      if (member.key == "locked") {
        lock(member, first);
      }
    }
  }

  void note_unknown(const JsonNode &member, const Option *option) {
    if (has_enough_problems()) {
      return;
    }
    if (member.key == "match") {
      note(member.key, member.place, "a match belongs in a rule; settings outside of rules apply to every program");
      return;
    }
    if (option != nullptr && option->scope != Scope::kInternal) {
      const std::string_view where = option->scope == Scope::kSystemFile ? "the user's files" : "a file";
      note(member.key, member.place,
           "it is not a key of " + std::string(where) + "; set the variable " + std::string(option->variable));
      return;
    }
    note(member.key, member.place, "there is no such key" + near_key_or_list(member.key));
  }

  void read_member(const Option &option, const JsonNode &member, std::size_t first, bool in_rule) {
    FileValue value = value_in_file(option, member);
    Statement statement{&option, {std::string(option.key), std::move(value.text), source_, at(member.place)},
                        {},      std::move(value.wrong),
                        in_rule, {}};
    const auto earlier =
        std::find_if(reading_.statements.begin() + static_cast<std::ptrdiff_t>(first), reading_.statements.end(),
                     [&](const Statement &each) { return each.option == &option; });
    if (earlier == reading_.statements.end()) {
      reading_.statements.push_back(std::move(statement));
      return;
    }
    earlier->wrong = "line " + std::to_string(member.place.line) + " gives it a second time, as " +
                     in_quotes(statement.origin.value);
    earlier->again.push_back(statement.origin.value);
  }

  void lock(const JsonNode &locked, std::size_t first) {
    if (locked.kind != Kind::kArray) {
      refuse(locked.place, R"(locked must be a list of keys, such as "locked": ["limit"])");
      return;
    }
    const bool may_lock = is_of_system();
    if (!may_lock) {
      note("locked", locked.place, "only a file in the system folder can lock keys; these keys stay unlocked");
    }
    for (const JsonNode &each : locked.children) {
      const auto statement =
          std::find_if(reading_.statements.begin() + static_cast<std::ptrdiff_t>(first), reading_.statements.end(),
                       [&](const Statement &one) { return one.origin.key == each.text; });
      if (statement != reading_.statements.end() && each.kind == Kind::kString) {
        statement->origin.locked = may_lock;
        continue;
      }
      reading_.in_doubt = true;
      if (!has_enough_problems()) {
        const bool known = option_of_key(each.text) != nullptr;
        refuse(locked.place, "locked names " + in_quotes(each.text) +
                                 (known ? ", but this file sets no value for it"
                                        : ", which is not a key" + near_key_or_list(each.text)));
      }
    }
  }

  const std::string &path_;
  Source source_;
  const ProgramIdentity *program_;
  FileReading reading_;
};

}  // namespace

FileReading read_settings_text(std::string_view text, const std::string &path, Source source,
                               const ProgramIdentity *program) {
  return FileReader(path, source, program).read(text);
}

}  // namespace ration::config

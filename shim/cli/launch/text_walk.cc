#include "cli/launch/text_walk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/file_name.h"
#include "cli/launch/launchers.h"
#include "cli/launch/program.h"
#include "cli/launch/shell_text.h"

namespace ration::cli {

namespace {

using Joint = ShellCommand::Joint;
using Text = WalkState::Text;

constexpr std::size_t kLongestText = std::size_t{256} << 10;
constexpr int kCommandsOfFile = 50;  // what reading one counts for in the budget

// Builtin commands of shells that start nothing and change nothing that counts here.
constexpr std::string_view kHarmless[] = {":",      "[",     "test",  "true",     "false",  "echo",    "printf",
                                          "pwd",    "wait",  "umask", "type",     "hash",   "times",   "kill",
                                          "ulimit", "break", "jobs",  "continue", "fg",     "bg",      "disown",
                                          "shopt",  "let",   "dirs",  "enable",   "setopt", "unsetopt"};
constexpr std::string_view kOfVariables[] = {"export",   "unset", "declare", "typeset",
                                             "readonly", "local", "unexport"};  // the last is make's

constexpr std::string_view kReading[] = {"eval", ".", "source"};

bool is_word_of(const auto &words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// True if an option of these words has the letter.
bool has_letter_option(const TextWalk::Words &words, std::string_view option) {
  return std::any_of(words.begin() + 1, words.end(), [&](const std::string &word) {
    return word.size() > 1 && word[0] == option[0] && word.find(option[1], 1) != std::string::npos &&
           word.find('=') == std::string::npos;
  });
}

// NAME+=MORE as NAME=${NAME}MORE.
std::string extending(const std::string &word) {
  const std::string text = text_of(word);
  const std::size_t plus = std::min(text.find("+="), text.size());
  const std::string name = text.substr(0, plus);
  return plus < text.size() && is_assignment(name + "=") ? kExpanded + name + "=${" + name + "}" + text.substr(plus + 2)
                                                         : word;
}

bool is_certain(const ShellCommand &command) {
  return command.before == Joint::kNext && !command.is_aside;
}

// A shell gets its commands from its standard input, as a here-document or in a way that is not known; with -c after
// this, if it is a here-document. False if it is not known.
bool give_input(TextWalk::Words &words, const ShellCommand &command) {
  const auto shell = std::find_if(words.begin(), words.end(), is_shell);
  const bool reads = shell != words.end() && std::all_of(shell + 1, words.end(), [](const std::string &word) {
                       return word.starts_with('-') && !has_letter_option({{}, word}, "-c");
                     });
  if (reads && !command.input.empty()) {
    words.erase(shell + 1, words.end());
    words.insert(words.end(), {"-c", command.input});
  }
  return !reads || !command.input.empty() || !(command.is_fed || command.is_aside);
}

}  // namespace

std::string text_of_file(const std::string &path, int &budget) {
  budget -= kCommandsOfFile;
  std::error_code error;
  const auto size = std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  std::string text(error || size > kLongestText || budget < 0 ? 0 : size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file ? text : "";
}

TextWalk::TextWalk(WalkState state, Words arguments)
    : state_(std::move(state)),
      variables_(std::move(arguments), state_.text == Text::kScript || state_.text == Text::kLine ? state_.script : ""),
      exports_preload_(!state_.walk.loss) {
  state_.is_kept_by_shell = false;
}

void TextWalk::read(const std::string &text) {
  const ShellText found = read_shell_text(text);
  is_plain_ = is_plain_ && found.is_plain;
  code_ += found.code + "\n";
  for (const ShellCommand &command : found.commands) {
    if (is_over_ || is_returned_ || --*state_.budget < 0) {
      is_plain_ = is_plain_ && (is_over_ || is_returned_);
      return;
    }
    step(command);
  }
}

void TextWalk::add(Words words) {
  starts_.push_back({std::move(words), state_, true, false});
}

TextWalk::Words TextWalk::expanded(const Words &words) const {
  Words out;
  for (const std::string &word : words) {
    Words parts =
        variables_.expanded(state_.walk.loss ? word : variables_.extended_by(word), state_.walk.environment, is_plain_);
    if (!out.empty() && parts.size() > 1 && text_of(word) == "$*") {  // sh -c "$*"
      std::string line;
      std::for_each(parts.begin(), parts.end(), [&](const std::string &each) { line += each + " "; });
      parts = {line};
    }
    out.insert(out.end(), parts.begin(), parts.end());
  }
  return out;
}

void TextWalk::step(const ShellCommand &command) {
  if (command.before == Joint::kNext) {
    is_doubtful_ = is_doubtful_ || list_may_change_;
    state_.is_folder_known = state_.is_folder_known && !list_may_move_;
    if (folder_before_) {
      std::tie(state_.folder, state_.is_folder_known) = *std::exchange(folder_before_, {});
    }
    list_changes_ = list_may_change_ = list_may_move_ = is_instead_ = false;
  }
  is_instead_ = is_instead_ || (command.before == Joint::kOr && list_changes_);
  const auto is_value = [](const std::string &word) { return is_assignment(text_of(word)); };
  Words words = command.words;
  for (std::string &word : words) {
    word = extending(word);
    if (!is_value(word) && !is_word_of(kOfVariables, word)) {
      break;
    }
  }
  words = expanded(words);
  if (std::all_of(words.begin(), words.end(), is_value)) {
    return change(command, [&] { assign_all(words, exports_all_, is_certain(command)); });
  }
  const auto first = std::find_if_not(words.begin(), words.end(), is_value);
  if (first != words.begin() && is_word_of(kReading, *first)) {
    doubt();  // shells differ in what becomes of the assignments afterwards
    change(command, [&] { assign_all({words.begin(), first}, true, false); });
  }
  if (is_expanded(*first) || !run_builtin({first, words.end()}, command)) {
    run(std::move(words), command, !is_doubtful_ && !is_instead_);
  }
}

// NAME=VALUE, and NAME where it `exports`. A variable that is not exported belongs to the shell alone.
void TextWalk::assign_all(const Words &words, bool exports, bool is_certain) {
  for (const std::string &word : words) {
    const std::string entry = text_of(word);
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_value = is_assignment(entry);
    if (is_value && (exports || state_.is_set(name) || (name == kPreload && exports_preload_))) {
      exports_preload_ = exports_preload_ || name == kPreload;
      state_.assign(word);
    } else if (is_value && reads_preload(entry) && (state_.walk.loss || !is_certain || !is_plain_)) {
      variables_.add(kExpanded + name + "=$");
    } else if (is_value) {
      variables_.add(is_certain || is_expanded(word) ? word : kExpanded + word);
    } else if (const std::string *const known = exports ? variables_.find(name) : nullptr; known != nullptr) {
      state_.assign(*known);
    }
  }
}

// The shell no longer exports the variable. `keeps`: it keeps the value itself.
void TextWalk::take(const std::string &variable, bool keeps) {
  if (!keeps) {
    variables_.erase(variable);
  } else if (state_.is_set(variable)) {
    variables_.add(variable + "=" +
                   (variable == kPreload ? state_.library->preload : state_.walk.environment.value(variable)));
  }
  exports_preload_ = exports_preload_ && variable != kPreload;
  state_.unset(variable);
}

// The command is started.
void TextWalk::run(Words words, const ShellCommand &command, bool is_sure) {
  const bool is_conditional = command.before != Joint::kNext;
  Start start{{}, state_, is_sure, is_conditional};
  start.before.is_kept_by_shell = !state_.walk.loss;
  words = start.before.after_assignments(std::move(words));
  while (!words.empty()) {
    const Launcher *builtin = builtin_of(words.front());
    if (builtin == nullptr) {
      break;
    }
    if (words.front() == "command" && (has_option(*builtin, words, "-v") || has_option(*builtin, words, "-V"))) {
      return;  // it only says what would be started
    }
    if (words.front() == "exec") {
      is_over_ = is_plain_ && !is_conditional && !command.is_aside;
      if (has_option(*builtin, words, "-c")) {
        start.before.unset(kPreload);
      }
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end_of_options(*builtin, words)));
  }
  if (words.empty()) {
    is_over_ = false;  // exec >log
  } else if (is_expanded(words.front()) || !run_builtin(words, command)) {
    if (!give_input(words, command)) {
      doubt_ = doubt_.empty() ? "starts a shell that reads commands" : doubt_;
    }
    start.words = std::move(words);
    starts_.push_back(std::move(start));
  }
}

template <class Change>
void TextWalk::change(const ShellCommand &command, const Change &make) {
  const auto figures = [this] {
    return std::make_tuple(state_.walk.loss.has_value(), state_.walk.changes.size(),
                           state_.walk.environment.value("RATION_DISABLE"));
  };
  const auto before = figures();
  const std::optional<CommandWalk::Loss> loss = state_.walk.loss;
  make();
  if (loss && !state_.walk.loss && (command.is_aside || command.before != Joint::kNext)) {
    state_.walk.loss = loss;  // perhaps it is made good, perhaps not
    state_.walk.loss->is_certain = false;
  }
  if (figures() != before) {
    list_changes_ = true;
    list_may_change_ = list_may_change_ || command.before != Joint::kNext;
    is_doubtful_ = is_doubtful_ || command.is_aside;
  }
}

// False if this is no builtin command. `words` has no assignments at the beginning.
bool TextWalk::run_builtin(const Words &words, const ShellCommand &command) {
  const std::string &name = words.front();
  const bool certainly = is_certain(command);
  if (is_word_of(kOfVariables, name)) {
    const bool removes = name == "unset" || name == "unexport";
    const bool takes =
        removes ? !has_letter_option(words, "-f") && !has_letter_option(words, "-n")
                : has_letter_option(words, name == "export" ? "-n" : "+x") && !has_letter_option(words, "-f");
    if (!removes && (name != "export" || (takes && state_.name != "bash"))) {
      doubt();  // dash does not have it, or it fails where the variable is read-only
    }
    change(command, [&] {
      if (!takes) {
        return assign_all({words.begin() + 1, words.end()},
                          name == "export" || exports_all_ || has_letter_option(words, "-x"), certainly);
      }
      for (auto word = words.begin() + 1; word != words.end(); ++word) {
        if ((is_expanded(*word) || word->find('*') != std::string::npos) && names_ours()) {  // zsh: unset -m
          doubt("unsets variables that are not known");
        } else if (!word->starts_with('-') && !word->starts_with('+')) {
          take(*word, name != "unset");
        }
      }
    });
  } else if (name == "cd" || name == "pushd" || name == "popd") {
    const auto folder = std::find_if(words.begin() + 1, words.end(),
                                     [](const auto &each) { return each.size() < 2 || each[0] != '-'; });
    move(folder == words.end() || name == "popd" ? "" : *folder, command);
  } else if (name == "." || name == "source") {
    read_file(words, certainly);
  } else if (name == "eval") {
    const bool is_known = std::none_of(words.begin(), words.end(), is_expanded);
    std::string text;
    std::for_each(words.begin() + 1, words.end(), [&](const std::string &each) { text += each + " "; });
    if (!is_known) {
      return doubt("runs eval with what is not known"), true;
    }
    read_now(text, certainly);
  } else if (name == "alias") {
    std::for_each(words.begin() + 1, words.end(),
                  [&](const std::string &each) { read_now(text_of(each).substr(each.find('=') + 1), false); });
  } else if (name == "trap") {
    doubt();
    later_.push_back(words.size() > 2 ? text_of(words[1]) : "");
  } else if (name == "read" || name == "getopts" || name == "mapfile" || name == "readarray") {
    std::for_each(words.begin() + 1, words.end(), [&](const std::string &each) { set_unknown(each, command); });
  } else if (name == "printf" && words.size() > 2 && words[1] == "-v") {
    set_unknown(words[2], command);
  } else if (name == "shift" || name == "set") {
    const auto has = [&](std::string_view option, std::string_view value) {
      return has_letter_option(words, option) || is_word_of(words, value);
    };
    exports_all_ = (exports_all_ && !has("+a", "")) || has("-a", "allexport");
    if (exports_all_ && !certainly) {
      doubt();
    }
    const bool is_one = certainly && (name == "shift" ? variables_.shift(words.size() == 1 ? "1" : words[1])
                                                      : words.size() > 1 && words[1] == "--");
    if (is_one && name == "set") {
      variables_.set_arguments(Words{words.begin() + 2, words.end()});
    } else if (name == "shift" ? !is_one : std::any_of(words.begin() + 1, words.end(), [](const std::string &each) {
                 return each == "--" || each.empty() ||
                        (each[0] != '-' && each[0] != '+' && each != "pipefail" && each != "allexport");
               })) {
      variables_.set_arguments({});
    }
  } else if (name == "return") {
    is_returned_ = is_plain_ && certainly && is_in_file_;
    if (!is_returned_) {
      doubt();  // outside of files, some shells go on
    }
  } else if (name == "exit") {
    is_over_ = is_plain_ && certainly;  // a compound command may not reach it
  } else {
    return is_word_of(kHarmless, name);
  }
  return true;
}

// Changes the folder. What runs in a process of its own changes it for the rest of its list alone.
void TextWalk::move(const std::string &folder, const ShellCommand &command) {
  if (command.is_aside && !folder_before_) {
    folder_before_.emplace(state_.folder, state_.is_folder_known);
  }
  state_.enter(folder);
  list_may_move_ = list_may_move_ || (command.before != Joint::kNext && !command.is_aside);
}

// The command gives the variable a value that is not known.
void TextWalk::set_unknown(const std::string &variable, const ShellCommand &command) {
  change(command, [&] { assign_all({kExpanded + text_of(variable) + "=$"}, exports_all_, false); });
}

// The shell reads the file as if it were part of this text, if it `certainly` does. `words`: . FILE [ARGUMENT ...]
void TextWalk::read_file(const Words &words, bool certainly) {
  const std::string name = words.size() > 1 ? words[1] : "";
  const std::optional<std::string> path = is_expanded(name) ? std::nullopt : state_.path_from_here(name);
  std::error_code error;
  if (!path || name.find('/') == std::string::npos) {
    doubt(is_of_system_ ? "" : "reads a file that is not known, " + text_of(name));
  } else if (const std::string text = text_of_file(*path, *state_.budget); !text.empty()) {
    const bool has_arguments = words.size() > 2;
    const std::tuple outside(is_in_file_, is_of_system_);
    std::optional<Words> arguments;
    if (has_arguments) {
      doubt();  // dash does not pass them
      arguments = variables_.set_arguments(Words{words.begin() + 2, words.end()});
    }
    is_in_file_ = true;
    is_of_system_ = is_of_system_ || path->starts_with("/etc/");
    read_now(text, certainly);
    std::tie(is_in_file_, is_of_system_) = outside;
    is_returned_ = false;
    if (has_arguments) {
      variables_.set_arguments(std::move(arguments));
    }
  } else {
    const bool is_unread = std::filesystem::exists(*path, error) && !std::filesystem::is_empty(*path, error);
    doubt(is_unread ? "reads a file that is not known, " + name : "");
  }
}

// The text is a part of this one, if it `certainly` is.
void TextWalk::read_now(const std::string &text, bool certainly) {
  if (!certainly) {
    doubt();
  }
  read(text);
  is_over_ = is_over_ && certainly;
}

}  // namespace ration::cli

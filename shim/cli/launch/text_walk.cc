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
constexpr std::string_view kHarmless[] = {
    ":",     "[",    "test",   "true",  "false", "echo",   "printf", "pwd",    "read",     "wait",
    "umask", "type", "hash",   "times", "kill",  "ulimit", "break",  "return", "getopts",  "jobs",
    "fg",    "bg",   "disown", "shopt", "let",   "dirs",   "enable", "setopt", "unsetopt", "continue"};
// Those that may start something.
constexpr std::string_view kObscure[] = {"eval", "trap", "alias"};
constexpr std::string_view kOfVariables[] = {"export", "unset", "declare", "typeset", "readonly", "local"};

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

struct TextWalk::Found {
  std::optional<CommandWalk::Loss> first;  // the first loss of a command, and what to say about it
  std::string about;
  bool is_everywhere = true, is_certain = true;
};

TextWalk::TextWalk(WalkState state, Words arguments)
    : state_(std::move(state)), arguments_(std::move(arguments)), exports_preload_(!state_.walk.loss) {
  state_.is_kept_by_shell = false;
}

void TextWalk::read(const std::string &text) {
  const ShellText found = read_shell_text(text);
  is_plain_ = is_plain_ && found.is_plain;
  code_ += found.code + "\n";
  for (const ShellCommand &command : found.commands) {
    if (is_over_ || --*state_.budget < 0) {
      is_plain_ = is_plain_ && is_over_;
      return;
    }
    step(command);
  }
}

void TextWalk::add(Words words) {
  starts_.push_back({std::move(words), state_, true, false});
}

TextWalk::Words TextWalk::expanded(const Words &words) const {
  static const std::string kAll = std::string(1, kExpanded) + "$@";
  Words out;
  for (const std::string &word : words) {
    if (word == kAll && arguments_) {
      out.insert(out.end(), arguments_->begin(), arguments_->end());
    } else {
      out.push_back(word);
    }
  }
  return out;
}

void TextWalk::step(const ShellCommand &command) {
  if (command.before == Joint::kNext) {
    is_doubtful_ = is_doubtful_ || list_may_change_;
    state_.is_folder_known = state_.is_folder_known && !list_may_move_;
    list_changes_ = list_may_change_ = list_may_move_ = is_instead_ = false;
  }
  is_instead_ = is_instead_ || (command.before == Joint::kOr && list_changes_);
  Words words = expanded(command.words);
  const auto is_value = [](const std::string &word) { return is_assignment(text_of(word)); };
  if (std::all_of(words.begin(), words.end(), is_value)) {
    return change(command, [&] { assign_all(words, false); });
  }
  const std::string &first = *std::find_if_not(words.begin(), words.end(), is_value);
  if (is_expanded(first) || !run_builtin({words.begin() + (&first - words.data()), words.end()}, command)) {
    run(std::move(words), command, !is_doubtful_ && !is_instead_);
  }
}

// NAME=VALUE, and NAME where it `exports`. A variable that is not exported belongs to the shell alone.
void TextWalk::assign_all(const Words &words, bool exports) {
  for (const std::string &word : words) {
    const std::string entry = text_of(word);
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_value = is_assignment(entry);
    if (is_value && (exports || state_.is_set(name) || (name == kPreload && exports_preload_))) {
      exports_preload_ = exports_preload_ || name == kPreload;
      state_.assign(word);
    } else if (is_value) {
      unexported_.push_back(word);
    } else if (exports) {
      const auto known = std::find_if(unexported_.rbegin(), unexported_.rend(),
                                      [&](const auto &each) { return text_of(each).starts_with(name + "="); });
      if (known != unexported_.rend()) {
        state_.assign(*known);
      }
    }
  }
}

// The shell no longer exports the variable. `keeps`: it keeps the value itself.
void TextWalk::take(const std::string &variable, bool keeps) {
  const std::string begin = variable + "=";
  if (!keeps) {
    std::erase_if(unexported_, [&](const std::string &each) { return text_of(each).starts_with(begin); });
  } else if (state_.is_set(variable)) {
    unexported_.push_back(begin +
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
  const bool is_certain = command.before == Joint::kNext && !command.is_aside;
  if (is_word_of(kOfVariables, name)) {
    const bool takes =
        name == "unset" ? !has_letter_option(words, "-f") : has_letter_option(words, name == "export" ? "-n" : "+x");
    if (takes && (name == "declare" || name == "typeset")) {
      doubt();  // dash has no such command
    }
    change(command, [&] {
      if (!takes) {
        return assign_all({words.begin() + 1, words.end()}, name == "export" || has_letter_option(words, "-x"));
      }
      for (auto word = words.begin() + 1; word != words.end(); ++word) {
        if (!word->starts_with('-') && !word->starts_with('+')) {
          take(*word, name != "unset");
        }
      }
    });
  } else if (name == "cd" || name == "pushd" || name == "popd") {
    const auto folder = std::find_if(words.begin() + 1, words.end(),
                                     [](const auto &each) { return each.size() < 2 || each[0] != '-'; });
    state_.enter(folder == words.end() || name == "popd" ? "" : *folder);
    list_may_move_ = list_may_move_ || !is_certain;
  } else if (name == "." || name == "source") {
    read_file(words.size() > 1 ? words[1] : "", is_certain);
  } else if (name == "shift" || name == "set") {
    const bool is_one = name == "shift" && words.size() == 1 && is_certain && arguments_ && !arguments_->empty();
    if (is_one) {
      arguments_->erase(arguments_->begin());
    } else if (name == "shift" || std::any_of(words.begin() + 1, words.end(), [](const std::string &each) {
                 return each == "--" || (each[0] != '-' && each[0] != '+' && each != "pipefail");
               })) {
      arguments_.reset();
    }
  } else if (name == "exit") {
    is_over_ = is_plain_ && is_certain;  // a compound command may not reach it
  } else if (is_word_of(kObscure, name)) {
    doubt();
  } else {
    return is_word_of(kHarmless, name);
  }
  return true;
}

// The shell reads the file as if it were part of this text, if it `certainly` does.
void TextWalk::read_file(const std::string &name, bool certainly) {
  const std::optional<std::string> path =
      name.find('/') == std::string::npos || is_expanded(name) ? std::nullopt : state_.path_from_here(name);
  const std::string text = path ? text_of_file(*path, *state_.budget) : "";
  if (text.empty() || !certainly) {
    doubt();
  }
  read(text);
  is_over_ = is_over_ && certainly;
}

// In a text that is not understood, LD_PRELOAD counts unless it is only read, extended or exported.
bool TextWalk::mentions_preload() const {
  const auto is_read_in = [](std::string_view text) {
    return text.find(std::string("$") + kPreload) != std::string_view::npos ||
           text.find(std::string("${") + kPreload) != std::string_view::npos;
  };
  for (std::size_t at = code_.find(kPreload); at != std::string::npos; at = code_.find(kPreload, at + 1)) {
    const std::string_view before = std::string_view(code_).substr(0, at);
    const std::string_view after = std::string_view(code_).substr(at + std::string_view(kPreload).size());
    const bool is_harmless = before.ends_with('$') || before.ends_with("${") || before.ends_with("export ");
    if (after.starts_with('=') ? !is_read_in(after.substr(0, after.find_first_of(";&|\n"))) : !is_harmless) {
      return true;
    }
  }
  return false;
}

TextWalk::Found TextWalk::follow_all(WalkState &state) const {
  Found found;
  for (const Start &start : starts_) {
    const CommandWalk walk = follow(start.before, start.words);
    const std::optional<CommandWalk::Loss> loss = loss_of_limit(walk, *state.library);
    for (const CommandWalk::Change &each : walk.changes) {
      const bool is_known = std::any_of(state.walk.changes.begin(), state.walk.changes.end(),
                                        [&](const auto &known) { return known.variable == each.variable; });
      if (!each.becomes.empty() && !is_known && state_.text != Text::kArgument) {
        state.walk.changes.push_back(each);
      }
    }
    if (!loss) {
      const bool is_run =
          std::any_of(walk.stages.begin() + static_cast<std::ptrdiff_t>(state.walk.stages.size()), walk.stages.end(),
                      [](const CommandWalk::Stage &stage) { return file_name(stage.words.front()) == "ration"; });
      if (is_run) {  // takes over the settings that it gives
        state.walk.environment = walk.environment;
        state.walk.probed = walk.probed;
      }
      found.is_everywhere = false;
      continue;
    }
    found.is_certain = found.is_certain && start.is_sure && loss->is_certain;
    if (!found.first) {
      found.first = loss;
      found.about = !walk.loss                 ? "starts " + loss->name + ", which " + loss->reason
                    : loss->name == state.name ? "changes LD_PRELOAD"
                                               : "loses LD_PRELOAD by " + loss->name;
    }
  }
  return found;
}

// True if the text starts one command alone, which is found.
bool TextWalk::is_one_command() const {
  if (!is_plain_ || starts_.size() != 1 || !starts_.front().is_sure || is_expanded(starts_.front().words.front())) {
    return false;
  }
  const auto &[words, before, is_sure, is_conditional] = starts_.front();
  const std::string path = before.path_from_here(words.front()).value_or("");
  return !is_conditional || launcher_of(file_name(words.front())) != nullptr ||
         inspect_program(path, before.walk.environment.value("PATH")).exit_status == 0;
}

// Says what the text may lose (`about`; empty: nothing), and that not all of it was checked.
void TextWalk::describe(WalkState &state, const std::string &about) const {
  std::string subject = state.name;
  std::string has = "has a command line that ";
  std::string unchecked = state.name;
  std::string which = ", whose command line ";
  switch (state_.text) {
    case Text::kScript:
      subject = state_.script;
      has = "is a script that ";
      unchecked = "the script " + subject;
      which = ", which ";
      break;
    case Text::kMakefile:
      has = "has a makefile that ";
      which = ", whose makefile ";
      break;
    case Text::kArgument:
      has = "has an argument that ";
      unchecked = about.empty() ? state.walk.unchecked : unchecked;
      which = ", of which an argument ";
      break;
    default:
      break;
  }
  state.walk.unchecked = about.empty() ? unchecked : unchecked + which + about + ",";
  if (!about.empty() && !state.walk.loss) {
    state.walk.suspicion = CommandWalk::Loss{subject, has + about, {}, false};
  }
}

TextWalk::Words TextWalk::settle(WalkState &state) {
  if (is_one_command()) {
    state = std::move(starts_.front().before);
    return std::move(starts_.front().words);
  }
  Found found = follow_all(state);
  const bool was_lost = state.walk.loss.has_value();
  const bool starts = !starts_.empty();
  const bool may_change = starts || state_.text != Text::kArgument;
  if (found.about.empty() && !is_plain_ && !was_lost && may_change && (state_.walk.loss || mentions_preload())) {
    found.about = "changes LD_PRELOAD";
    found.is_everywhere = false;
  }
  if (starts && found.is_everywhere && was_lost) {
    state.walk.loss->is_certain = state.walk.loss->is_certain && found.is_certain;
    found.about.clear();
  } else if (starts && found.is_everywhere && found.is_certain && is_plain_) {
    state.walk.loss = found.first;
  } else if (starts) {
    state.walk.loss.reset();
  }
  describe(state, found.about);
  return {};
}

}  // namespace ration::cli

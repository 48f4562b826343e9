// What a text loses: the second half of TextWalk.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/file_name.h"
#include "cli/launch/launchers.h"
#include "cli/launch/program.h"
#include "cli/launch/shell_text.h"
#include "cli/launch/text_walk.h"

namespace ration::cli {

namespace {

using Text = WalkState::Text;

// Programs that every system has, which use no GPU and start nothing. They may well be started without the library.
constexpr std::string_view kWithoutGpu[] = {
    "awk",        "basename", "c++",   "cat",  "cc",       "chmod",    "chown",   "clear",  "cmp",
    "cp",         "curl",     "cut",   "date", "df",       "diff",     "dirname", "du",     "echo",
    "expr",       "false",    "file",  "g++",  "gcc",      "git",      "grep",    "gunzip", "gzip",
    "head",       "hostname", "id",    "ldd",  "ln",       "mkdir",    "mktemp",  "mv",     "nproc",
    "nvidia-smi", "printf",   "ps",    "pwd",  "readlink", "realpath", "rm",      "rmdir",  "sed",
    "seq",        "sleep",    "sort",  "stat", "tail",     "tar",      "tee",     "touch",  "tput",
    "tr",         "true",     "uname", "uniq", "unzip",    "wc",       "wget",    "which",  "whoami"};

// True if the command that begins at the end of `before` exports variables, or makes them read-only, and no more.
bool only_exports(std::string_view before) {
  before = before.substr(before.find_last_of(";&|(\n") + 1);
  before.remove_prefix(std::min(before.find_first_not_of(" \t"), before.size()));
  constexpr std::string_view kExporting[] = {"export ", "readonly ", "declare -", "typeset -"};
  return std::any_of(std::begin(kExporting), std::end(kExporting),
                     [&](std::string_view each) { return before.starts_with(each); }) &&
         before.find(" +") == std::string_view::npos && before.find(" -n") == std::string_view::npos;
}

}  // namespace

struct TextWalk::Found {
  std::optional<CommandWalk::Loss> first;  // the first loss of a command, and what to say about it
  std::string about;
  bool is_everywhere = true, is_certain = true;
};

// In a text that is not understood, LD_PRELOAD counts unless it is only read, extended or exported.
bool TextWalk::mentions_preload() const {
  for (std::size_t at = code_.find(kPreload); at != std::string::npos; at = code_.find(kPreload, at + 1)) {
    const std::string_view before = std::string_view(code_).substr(0, at);
    const std::string_view after = std::string_view(code_).substr(at + std::string_view(kPreload).size());
    const bool is_harmless = before.ends_with('$') || before.ends_with("${") || only_exports(before);
    if (after.starts_with('=') ? !reads_preload(after.substr(0, after.find_first_of(";&|\n"))) : !is_harmless) {
      return true;
    }
  }
  return false;
}

// True if the text names a variable of ours by a pattern (${!LD_*}) or asks for the names of all variables.
bool TextWalk::names_ours() const {
  const std::string_view code = code_;
  for (std::size_t at = code.find("LD_"); at != std::string_view::npos; at = code.find("LD_", at + 1)) {
    if (!code.substr(at).starts_with("LD_LIBRARY_PATH")) {
      return true;
    }
  }
  constexpr std::string_view kAll[] = {"RATION", "compgen", "printenv", "env |", "env|"};
  return std::any_of(std::begin(kAll), std::end(kAll),
                     [&](std::string_view each) { return code.find(each) != std::string_view::npos; });
}

TextWalk::Found TextWalk::follow_all(WalkState &state) const {
  Found found;
  std::vector<CommandWalk> walks;
  for (const Start &start : starts_) {
    walks.push_back(follow(start.before, start.words));
  }
  const auto is_without_gpu = [](const CommandWalk &walk) {
    return !walk.is_open && !walk.stages.empty() && walk.stages.back().words.size() > 0 &&
           std::find(std::begin(kWithoutGpu), std::end(kWithoutGpu), file_name(walk.stages.back().words.front())) !=
               std::end(kWithoutGpu);
  };
  const bool is_any_other = !std::all_of(walks.begin(), walks.end(), is_without_gpu);
  for (std::size_t i = 0; i < walks.size(); ++i) {
    const Start &start = starts_[i];
    const CommandWalk &walk = walks[i];
    if (is_any_other && is_without_gpu(walk)) {
      continue;
    }
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
      found.about = walk.loss && loss->name == state.name ? "changes LD_PRELOAD"
                    : walk.loss                           ? "loses LD_PRELOAD by " + loss->name
                    : loss->name == state.name            ? loss->reason
                                                          : "starts " + loss->name + ", which " + loss->reason;
    }
  }
  return found;
}

// True if the text starts one command alone, which is found.
bool TextWalk::is_one_command() const {
  if (!is_plain_ || !doubt_.empty() || starts_.size() != 1 || !starts_.front().is_sure ||
      is_expanded(starts_.front().words.front())) {
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
  for (const std::string &text : std::exchange(later_, {})) {
    is_over_ = false;
    read(text);
  }
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
  if (found.about.empty() && !was_lost && !doubt_.empty()) {
    found.about = doubt_;
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

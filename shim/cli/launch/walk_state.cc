#include "cli/launch/walk_state.h"

#include <algorithm>
#include <utility>

#include "cli/launch/preload_order.h"
#include "cli/launch/shell_text.h"
#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

// These commands pass the environment on.
constexpr std::string_view kPassOn[] = {"srun",        "sbatch", "flux",    "at",        "batch",           "apptainer",
                                        "singularity", "chroot", "nsenter", "distrobox", "distrobox-enter", "toolbox"};

// True if the value has ${LD_PRELOAD} in it, and what follows the name there takes nothing away from it.
bool keeps_entries(const std::string &value) {
  const std::string open = std::string("${") + kPreload;
  const std::size_t at = value.find(open);
  const std::string more = at == std::string::npos ? "#" : value.substr(at + open.size());
  return more.find_first_of("+#%") != 0 && !more.starts_with(":+") &&
         !(more.starts_with('/') && more.find("ration") != std::string::npos);
}

const char *remedy_in(WalkState::Text text) {
  return text == WalkState::Text::kScript     ? "put ration run into the script, before the program"
         : text == WalkState::Text::kMakefile ? "put ration run into the makefile, before the program"
                                              : "put ration run into its command line, before the program";
}

}  // namespace

std::string WalkState::put_behind() const {
  return "put ration run after it: " + name + " ... " + own_command() + " run OPTIONS -- COMMAND";
}

void WalkState::lose(const std::string &reason, std::string remedy) {
  if (!walk.loss) {
    const bool passes_on = std::find(std::begin(kPassOn), std::end(kPassOn), name) != std::end(kPassOn);
    walk.loss = CommandWalk::Loss{name, reason, std::move(remedy), !passes_on && !is_named_by_path};
  }
}

void WalkState::lose_preload(const std::string &reason, const std::string &more) {
  if (text == Text::kNone) {
    lose(reason, put_behind() + more);
  } else {
    lose("takes the library out of LD_PRELOAD", remedy_in(text));
  }
}

void WalkState::clear_environment(const std::string &search_path) {
  for (const config::Option &option : config::options()) {
    if (!option.variable.empty()) {
      note_change(std::string(option.variable), {});
    }
  }
  const char *const none[] = {nullptr};
  walk.environment = EnvironmentBlock(none);
  if (!search_path.empty()) {
    walk.environment.set("PATH", search_path);
  }
}

void WalkState::note_change(const std::string &variable, const std::string &becomes) {
  std::erase_if(walk.changes, [&](const CommandWalk::Change &each) { return each.variable == variable; });
  const std::string was = own->value(variable);
  if (config::option_of_variable(variable) != nullptr && !was.empty() && was != becomes) {
    walk.changes.push_back({name, variable, was, becomes});
  }
}

void WalkState::give(const std::string &variable, const std::string &value) {
  walk.environment.set(variable, value);
  if (variable != kPreload) {
    walk.probed.set(variable, value);
    return;
  }
  const std::vector<std::string> entries = entries_of_preload(value);
  if (std::any_of(entries.begin(), entries.end(), is_our_library)) {
    walk.loss.reset();
  } else if (value.empty()) {
    lose_preload(kEmptied, "");
  } else {
    lose_preload("starts its command with LD_PRELOAD=" + config::shown(value) + ", without libration.so",
                 "; it keeps what LD_PRELOAD has");
  }
}

void WalkState::set(const std::string &variable, const std::string &value) {
  give(variable, value);
  note_change(variable, value);
}

void WalkState::unset(const std::string &variable) {
  note_change(variable, {});
  walk.environment.unset(variable);
  walk.probed.unset(variable);
  if (variable == kPreload) {
    lose_preload(kEmptied, "");
  }
}

// LD_PRELOAD is set where the library is not lost: `ration run` sets it after the walk.
bool WalkState::is_set(const std::string &variable) const {
  return variable == kPreload ? !walk.loss : !walk.environment.value(variable).empty();
}

void WalkState::assign(std::string_view word) {
  const std::string entry = text_of(word);
  const std::size_t equals = entry.find('=');
  const std::string variable = entry.substr(0, equals);
  std::string value = entry.substr(equals + 1);
  if (!is_expanded(word)) {
    return set(variable, value);
  }
  std::size_t of_itself = std::string::npos;
  for (const std::string &self : {"$" + variable, "${" + variable + "}"}) {
    of_itself = std::min(of_itself, value.find(self));
    if (variable == "PATH" && value.find(self) != std::string::npos) {
      value.replace(value.find(self), self.size(), walk.environment.value("PATH"));
    }
  }
  if (variable != kPreload) {  // the value is not known: perhaps that of the setting itself
    std::erase_if(walk.changes, [&](const CommandWalk::Change &each) { return each.variable == variable; });
  }
  if (variable == "PATH") {
    walk.environment.set(variable, value);  // a folder in a variable is not found
  } else if (variable == kPreload && of_itself == std::string::npos && !keeps_entries(value)) {
    lose_preload("starts its command with another LD_PRELOAD", "");
    walk.loss->is_certain = false;
  } else if (const std::vector<std::string> entries = entries_of_preload(value);
             variable == kPreload &&
             (is_kept_by_shell || std::any_of(entries.begin(), entries.end(), is_our_library))) {
    walk.loss.reset();
  }
}

std::vector<std::string> WalkState::after_assignments(std::vector<std::string> words) {
  const auto end =
      std::find_if_not(words.begin(), words.end(), [](const auto &each) { return is_assignment(text_of(each)); });
  std::for_each(words.begin(), end, [this](const std::string &each) { assign(each); });
  words.erase(words.begin(), end);
  return words;
}

void WalkState::set_all(const std::vector<std::string> &words) {
  for (const std::string &word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string variable = word.substr(0, equals);
    const std::string ours = own->value(variable);
    set(variable, equals < word.size()   ? word.substr(equals + 1)
                  : variable == kPreload ? preload_order(ours, library->preload, {})  // as it is set after the walk
                                         : ours);
  }
}

void WalkState::enter(const std::string &new_folder) {
  const std::optional<std::string> path = path_from_here(new_folder);
  is_folder_known = path.has_value() && !new_folder.empty() && new_folder != "-" && !is_expanded(new_folder);
  folder = path.value_or("");
}

std::optional<std::string> WalkState::path_from_here(const std::string &path) const {
  if (path.starts_with('/')) {
    return path;
  }
  return is_folder_known ? std::optional(folder.empty() ? path : folder + "/" + path) : std::nullopt;
}

}  // namespace ration::cli

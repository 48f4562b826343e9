// Known commands that start another one: which of their words belong to the other command, and which environment it
// gets. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

enum class Passing {
  kAll,        // this environment, that of the launcher
  kEnv,        // env(1): this one, with the changes that its words ask for
  kElevated,   // sudo: a new one, with other rights
  kLogin,      // su: a new one if a login is asked for or su itself gains rights
  kReset,      // setpriv: a new one if that is asked for
  kCleared,    // bwrap: an empty one if that is asked for
  kService,    // systemd-run: a service's; with --scope, this one
  kFar,        // one of another machine, or of a service
  kServer,     // at, systemctl: a server's, which is always another process
  kTmux,       // tmux: its server's, if a server is running
  kScreen,     // screen: its server's, if called within a session
  kContained,  // a container's
  kOtherRoot,  // this one, but under another root folder
  kShell,      // sh, bash
  kArch,       // setarch, whose first word may be an architecture
  kFind,       // find: with -exec
  kLine,       // script: with -c, its word is a shell's command line
  kJoined,     // watch: its words together are a shell's command line
  kMake,       // make: as the makefile says
  kRation,     // `ration run`
};

struct Launcher {
  std::string_view name;
  Passing passing;
  std::string_view valued;       // its short options that take a value
  std::string_view valued_long;  // its long options that take a value, each with a blank before and after it
  std::size_t arguments = 0;     // how many of its own words follow the options
  // The words that make it start a command, in the form of `valued_long`; empty: it always does. "container/run": both
  // words, one after the other.
  std::string_view verbs = {};
  // Its short options whose value is optional: the next word, unless that is an option.
  std::string_view valued_perhaps = {};
};

// nullptr if the command is not known as a launcher.
const Launcher *launcher_of(std::string_view name);
// The same for a shell's words that precede a command: exec, command, builtin.
const Launcher *builtin_of(std::string_view name);
// True if these words make it start a command: `docker ps` does not.
bool starts_command(const Launcher &launcher, const std::vector<std::string> &words);
// The index of the first word after its options; words.size() if there is none.
std::size_t end_of_options(const Launcher &launcher, const std::vector<std::string> &words);
// True if the word is this long option, with or without its value, and possibly abbreviated as getopt_long(3) allows.
bool is_long_option(std::string_view word, std::string_view option);
// True if `option` is among its options; `-x` is also found in a cluster of short ones.
bool has_option(const Launcher &launcher, const std::vector<std::string> &words, std::string_view option);
// The value of an option, from `-c VALUE`, `--command VALUE` or `--command=VALUE`; nullopt if it is not given.
std::optional<std::string> option_value(const Launcher &launcher, const std::vector<std::string> &words,
                                        std::string_view short_name, std::string_view long_name);

// The value of each occurrence of the option before the first word that is not an option.
std::vector<std::string> option_values(const Launcher &launcher, const std::vector<std::string> &words,
                                       std::string_view short_name, std::string_view long_name);

}  // namespace ration::cli

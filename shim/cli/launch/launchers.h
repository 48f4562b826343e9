// Known launchers, that is, commands that start another command: which of their words form that command, and which
// environment it gets. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

enum class Passing {
  kAll,        // the launcher's own environment
  kEnv,        // env(1): the launcher's own, with the changes that its arguments request
  kElevated,   // sudo: a new environment, and other rights
  kLogin,      // su: a new environment if a login is requested or su itself gains rights
  kReset,      // setpriv: a new environment if an option requests that
  kCleared,    // bwrap: an empty environment if an option requests that
  kService,    // systemd-run: the environment of a service; with --scope, the launcher's own
  kFar,        // the environment of another machine or of a service
  kServer,     // `at`, `systemctl`: the command gets the environment of a server, which is another process
  kTmux,       // tmux: its server's environment, if a server is running
  kScreen,     // screen: its server's environment, if called within a session
  kContained,  // the environment of a container
  kOtherRoot,  // the launcher's own, but under another root folder
  kShell,      // sh, bash
  kArch,       // setarch, whose first word may be an architecture
  kFind,       // find: the command follows -exec
  kLine,       // script(1): the value of -c is a shell's command line
  kJoined,     // watch: its arguments together are a shell's command line
  kMake,       // make: the makefile determines the commands
  kChosen,     // pyenv: a script that passes its environment on to a program that it looks for
  kRation,     // `ration run`
};

struct Launcher {
  std::string_view name;
  Passing passing;
  std::string_view valued;       // the short options that take a value
  std::string_view valued_long;  // the long options that take a value, each with a blank before and after it
  std::size_t arguments = 0;     // how many of the launcher's own words follow the options
  // The subcommands with which it starts a command, in the form of `valued_long`; empty: it always starts one.
  // "container/run" means two successive words, and "*/run" any word and then `run`.
  std::string_view verbs = {};
  // The short options whose value is the next word, unless that word is an option.
  std::string_view valued_perhaps = {};
  std::string_view asking = {};  // the short options with which it only tells something
};

// nullptr if the command is not known as a launcher.
const Launcher *launcher_of(std::string_view name);
// Like launcher_of(), for shell words that precede a command: exec, command, builtin.
const Launcher *builtin_of(std::string_view name);
// True if the launcher starts a command when given these words. (`docker ps` and `ssh -V` start none.)
bool starts_command(const Launcher &launcher, const std::vector<std::string> &words);
// The index of the first word after the launcher's options; words.size() if there is none.
std::size_t end_of_options(const Launcher &launcher, const std::vector<std::string> &words);
// True if the word is this long option, with or without a value, and possibly abbreviated as getopt_long(3) allows.
bool is_long_option(std::string_view word, std::string_view option);
// True if `option` is among the launcher's options. `-x` is also found in a cluster of short options.
bool has_option(const Launcher &launcher, const std::vector<std::string> &words, std::string_view option);
// The value of an option given as `-c VALUE`, `--command VALUE` or `--command=VALUE`; nullopt if it is not given.
std::optional<std::string> option_value(const Launcher &launcher, const std::vector<std::string> &words,
                                        std::string_view short_name, std::string_view long_name);

// The words with the options before all others.
std::vector<std::string> options_first(const Launcher &launcher, const std::vector<std::string> &words);
// The value of each occurrence of the option before the first word that is not an option.
std::vector<std::string> option_values(const Launcher &launcher, const std::vector<std::string> &words,
                                       std::string_view short_name, std::string_view long_name);

}  // namespace ration::cli

// Commands that start another one, by their names: which of their words are the other command's, and what becomes of
// the environment on the way. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

enum class Passing {
  kAll,        // the command has this environment
  kEnv,        // env(1): changed as its words say
  kElevated,   // sudo: other rights, a new environment
  kLogin,      // su: new as for a login, where it is asked for or where su itself gains rights
  kReset,      // setpriv: new where it is asked for
  kCleared,    // bwrap: none where it is asked for
  kService,    // systemd-run: that of a service, but in a scope
  kFar,        // another machine's, or a service's
  kServer,     // that of a server, which is always another process: at, systemctl
  kTmux,       // tmux: that of its server, where one runs
  kScreen,     // screen: within a session that of its server
  kContained,  // a container's
  kOtherRoot,  // this one, under another root folder
  kShell,      // sh, bash
  kRation,     // `ration run`
};

struct Launcher {
  std::string_view name;
  Passing passing;
  std::string_view valued;       // its short options that take a value
  std::string_view valued_long;  // its long ones, with a blank before and behind each
  std::size_t arguments = 0;     // words of its own behind the options
  std::string_view verbs = {};   // the words that make it start a command, as `valued_long`; empty: any line does;
                                 // "container/run": one behind another
  // Its short options after which a word that is no option is their value.
  std::string_view valued_perhaps = {};
};

// nullptr: none that is known.
const Launcher *launcher_of(std::string_view name);
// Whether it starts a command as it is called: `docker ps` does not.
bool starts_command(const Launcher &launcher, const std::vector<std::string> &words);
// Where the first word behind its options is, words.size() where there is none.
std::size_t end_of_options(const Launcher &launcher, const std::vector<std::string> &words);
// Whether the word is this long option, with or without its value, perhaps abbreviated as getopt_long(3) lets it be.
bool is_long_option(std::string_view word, std::string_view option);
// Whether one of its options is this one, `-x` in a cluster of short ones too.
bool has_option(const Launcher &launcher, const std::vector<std::string> &words, std::string_view option);
// The value of an option, as `-c VALUE`, `--command VALUE` or `--command=VALUE`; nothing where it is not there.
std::optional<std::string> option_value(const Launcher &launcher, const std::vector<std::string> &words,
                                        std::string_view short_name, std::string_view long_name);

// The value of each of these options, before the first other word.
std::vector<std::string> option_values(const Launcher &launcher, const std::vector<std::string> &words,
                                       std::string_view short_name, std::string_view long_name);

// The words of a shell's command line that is one command without variables, pipes or patterns; nothing: it is more.
std::optional<std::vector<std::string>> simple_command(std::string_view line);
// The commands of a shell's line, or of a line of a script: of each the words before the first that is not plain.
std::vector<std::vector<std::string>> commands_in(std::string_view line);
// Whether it is NAME=VALUE, as a shell, env and sudo take it.
bool is_assignment(std::string_view word);

}  // namespace ration::cli

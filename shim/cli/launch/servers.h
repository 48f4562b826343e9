// Servers that are already running and start what a command hands to them. Layer: cli. A server is tested by connecting
// to its socket; nothing is sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/process_facts.h"

namespace ration::cli {

// A command line of tmux(1), as far as it was parsed for our purpose.
struct TmuxCall {
  std::string socket;                    // its server's socket
  bool starts = true;                    // the server starts a command for it; not so for `tmux ls`
  bool types = false;                    // `command` has what to start in another form (keys for send-keys)
  std::vector<std::string> command;      // a single word is a shell's line; empty: the user's shell
  std::vector<std::string> environment;  // NAME=VALUE, from -e
};
TmuxCall read_tmux(const std::vector<std::string> &words, const EnvironmentBlock &environment);

// The server that listens at `socket`.
std::optional<ProcessFacts> server_at(const std::string &socket);
// The server of the session of screen(1) in which `environment` is ($STY).
std::optional<ProcessFacts> server_of_screen(const EnvironmentBlock &environment);
// True if the server has not loaded the library, and was not told to.
bool is_without_library(const ProcessFacts &server);

}  // namespace ration::cli

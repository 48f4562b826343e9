// Servers that start what a command hands to them, and run already. Layer: cli. A connection to a server's socket is
// made and ended; nothing is sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/process_facts.h"

namespace ration::cli {

// A command line of tmux(1), read as far as it matters here.
struct TmuxCall {
  std::string socket;                    // of its server
  bool starts = true;                    // a command, in the server; `tmux ls` does not
  bool types = false;                    // what it starts is among `command`, in a form of its own (send-keys)
  std::vector<std::string> command;      // one word is a shell's line; empty: the user's shell
  std::vector<std::string> environment;  // NAME=VALUE of -e
};
TmuxCall read_tmux(const std::vector<std::string> &words, const EnvironmentBlock &environment);

// The server that runs at `socket`.
std::optional<ProcessFacts> server_at(const std::string &socket);
// That of the session of screen(1) in which screen is called ($STY).
std::optional<ProcessFacts> server_of_screen(const EnvironmentBlock &environment);
// Whether it neither has the library nor was told to load it.
bool is_without_library(const ProcessFacts &server);

}  // namespace ration::cli

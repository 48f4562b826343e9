// Servers that start what a command hands to them, and run already. Layer: cli. A connection to a server's socket is
// made and ended; nothing is sent.
#pragma once

#include <string>
#include <vector>

#include "cli/run/environment_block.h"

namespace ration::cli::doctor {

// A command line of tmux(1), read as far as it matters here.
struct TmuxCall {
  std::string socket;                    // of its server
  bool starts = true;                    // a command, in the server; `tmux ls` does not
  bool types = false;                    // what it starts is among `command`, in a form of its own (send-keys)
  std::vector<std::string> command;      // one word is a shell's line; empty: the user's shell
  std::vector<std::string> environment;  // NAME=VALUE of -e
};
TmuxCall read_tmux(const std::vector<std::string> &words, const EnvironmentBlock &environment);

// Whether the server runs at `socket`, and was started without the library.
bool is_plain_server(const std::string &socket);
// Whether screen(1) is called in a session of its own ($STY), whose server was started without the library.
bool is_in_plain_screen(const EnvironmentBlock &environment);

}  // namespace ration::cli::doctor

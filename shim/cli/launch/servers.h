// Finds running servers that start programs at the request of a command such as tmux(1). Layer: cli. A server is tested
// by connecting to its socket; nothing is sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/process_facts.h"

namespace ration::cli {

// The parts of a tmux(1) command line that matter here.
struct TmuxCall {
  std::string socket;                    // the socket of its server
  bool starts = true;                    // it makes the server start a command; false for `tmux ls`
  bool types = false;                    // `command` holds the command in another form, such as keys for send-keys
  std::vector<std::string> command;      // a single word is a command line for a shell; empty: the user's shell
  std::vector<std::string> environment;  // NAME=VALUE, from -e
};
TmuxCall read_tmux(const std::vector<std::string> &words, const EnvironmentBlock &environment);

// The server that listens on `socket`.
std::optional<ProcessFacts> server_at(const std::string &socket);
// The server of the screen(1) session that `environment` belongs to ($STY).
std::optional<ProcessFacts> server_of_screen(const EnvironmentBlock &environment);
// True if the server has not loaded the library and its LD_PRELOAD does not name it.
bool is_without_library(const ProcessFacts &server);

}  // namespace ration::cli

// Starts a command and waits for it. Signals, exit status and file descriptors are the same as without `ration` in
// between.
// Layer: cli. Threads: the only one of the process.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ration::cli {

struct Started {
  int our_error = 0;    // errno if a call of our own failed; nothing was run
  int exec_error = 0;   // errno if execve failed; nothing was run
  int exit_status = 0;  // the command's own, or 128 + the signal that ended it
  int signal = 0;       // the signal that ended the command; 0: none did
  // True if the command executed no other program and waited for no child, so none of its processes lost LD_PRELOAD.
  bool was_alone = false;
};

// Forwards every signal that can be caught, except SIGTTIN and SIGTTOU, unless the terminal or kill(2) already sent it
// to the whole process group. The command gets the signal mask and dispositions that we inherited. `for_shell`: after
// ENOEXEC, /bin/sh runs the file, as execvp(3) does. `meanwhile`, if given, is called a few times a second.
Started start_and_wait(const std::string &path, const std::vector<std::string> &arguments,
                       const std::vector<const char *> &environment, bool for_shell,
                       const std::function<void()> &meanwhile = {});

}  // namespace ration::cli

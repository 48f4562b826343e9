// Starts a command and waits for it. Signals, exit status and descriptors are as without `ration` between.
// Layer: cli. Threads: the only one of the process.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ration::cli {

struct Started {
  int our_error = 0;    // errno of a call of our own: nothing runs
  int exec_error = 0;   // errno of execve: nothing runs
  int exit_status = 0;  // the command's own, or 128 + the signal that ended it
  int signal = 0;       // that one; 0: none did
  // It executed no other program and waited for no child, so that no process of it can have lost LD_PRELOAD.
  bool was_alone = false;
};

// Forwards every signal that can be caught, SIGTTIN and SIGTTOU apart, except where the whole process group got it
// already: from the terminal, or from kill(2). The command gets the signal mask and dispositions that we inherited.
// `for_shell`: after ENOEXEC /bin/sh runs the file, as execvp(3) does. `meanwhile`, if given, is called some times a
// second.
Started start_and_wait(const std::string &path, const std::vector<std::string> &arguments,
                       const std::vector<const char *> &environment, bool for_shell,
                       const std::function<void()> &meanwhile = {});

}  // namespace ration::cli

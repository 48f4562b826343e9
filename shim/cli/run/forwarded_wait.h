// Starts a command and waits for it. Signals, exit status and descriptors are as they would be without `ration` in
// between.
// Layer: cli. Threads: the only one of the process.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ration::cli {

struct Started {
  int our_error = 0;    // errno of our own failed call: nothing runs
  int exec_error = 0;   // errno of execve: nothing runs
  int exit_status = 0;  // the command's own, or 128 + the signal that ended it
  int signal = 0;       // the signal that ended the command; 0: none did
  // True if the command executed no other program and waited for no child, so none of its processes lost LD_PRELOAD.
  bool was_alone = false;
};

// Forwards every signal that can be caught, except SIGTTIN and SIGTTOU, unless the whole process group already got it:
// from the terminal or from kill(2). The command gets the signal mask and dispositions that we inherited. `for_shell`:
// after ENOEXEC, /bin/sh runs the file, as execvp(3) does. `meanwhile`, if given, is called a few times a second.
Started start_and_wait(const std::string &path, const std::vector<std::string> &arguments,
                       const std::vector<const char *> &environment, bool for_shell,
                       const std::function<void()> &meanwhile = {});

}  // namespace ration::cli

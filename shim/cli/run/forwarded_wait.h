// Starts a command and waits for it as if it had been started without us: signals, exit status, descriptors.
// Layer: cli. Threads: the only one of the process.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

struct Started {
  int our_error = 0;    // errno of what we needed ourselves: nothing runs
  int exec_error = 0;   // errno of execve: nothing runs
  int exit_status = 0;  // the command's own, or 128 + the signal that ended it
};

// Forwards INT TERM HUP QUIT, except what the terminal has given to the whole process group already. The command gets
// the signal mask and dispositions that we inherited. `for_shell`: ENOEXEC starts /bin/sh with the file, as execvp(3).
Started start_and_wait(const std::string &path, const std::vector<std::string> &arguments,
                       const std::vector<const char *> &environment, bool for_shell);

}  // namespace ration::cli

// Runs work in a separate process: a forked child, or this test program again.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ration::test {

// Runs `body` in a forked child, which passes its value to _exit(). Returns the wait status.
template <class Body>
int in_child(const Body &body) {
  const pid_t pid = fork();
  if (pid < 0) {
    throw std::runtime_error("fork failed");
  }
  if (pid == 0) {
    int value = 120;
    try {
      value = body();
    } catch (...) {
    }
    _exit(value);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

// Returns the value of `body`, or 1000 + the signal that ended the child.
template <class Body>
int exit_code_of(const Body &body) {
  const int status = in_child(body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Executes this test program again with the hidden test `name` and the added environment variables.
inline void become_test(const std::string &name, const std::vector<std::pair<std::string, std::string>> &variables) {
  for (const auto &[variable, value] : variables) {
    setenv(variable.c_str(), value.c_str(), 1);
  }
  execl("/proc/self/exe", "ration-test-child", name.c_str(), static_cast<char *>(nullptr));
  _exit(121);
}

// The text that was written to stderr while `body` ran in this process.
template <class Body>
std::string stderr_of(const Body &body) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  body();
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;
  char chunk[4096];
  for (ssize_t got = read(ends[0], chunk, sizeof(chunk)); got > 0; got = read(ends[0], chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  return text;
}

}  // namespace ration::test

#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace run_test {

namespace {

std::string take_all(int first, int second, std::string &other) {
  std::string text;
  pollfd ends[] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    poll(ends, 2, -1);
    for (pollfd &end : ends) {
      char buffer[4096];
      if (end.fd >= 0 && end.revents != 0) {
        const ssize_t count = read(end.fd, buffer, sizeof(buffer));
        if (count <= 0) {
          end.fd = -1;
        } else {
          (&end == ends ? text : other).append(buffer, static_cast<std::size_t>(count));
        }
      }
    }
  }
  return text;
}

}  // namespace

Child::Child(const std::vector<std::string> &command, const std::vector<std::string> &extra_environment,
             const std::function<void()> &prepare, bool terminal) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  pid_ = terminal ? forkpty(&terminal_, nullptr, nullptr, nullptr) : fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const std::string &entry : extra_environment) {
      const std::size_t equals = entry.find('=');
      setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    if (prepare) {
      prepare();
    }
    std::vector<char *> argv;
    for (const std::string &word : command) {
      argv.push_back(const_cast<char *>(word.c_str()));
    }
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(99);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int end : {out_, err_, terminal_}) {
    if (end >= 0) {
      close(end);
    }
  }
}

std::string Child::read_line() {
  char c = 0;
  std::string line;
  while (read(out_, &c, 1) == 1 && c != '\n') {
    line += c;
  }
  read_ += line + "\n";
  return line;
}

void Child::type(const std::string &keys) const {
  if (write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) {
    throw std::runtime_error("no terminal");
  }
}

void Child::await_echo(const std::string &text) const {
  std::string shown;
  char c = 0;
  while (shown.find(text) == std::string::npos && read(terminal_, &c, 1) == 1) {
    shown += c;
  }
}

void Child::hang_up() {
  close(terminal_);
  terminal_ = -1;
}

void Child::signal(int number) const {
  kill(pid_, number);
}

void Child::signal_group(int number) const {
  kill(-pid_, number);
}

Ended Child::wait() {
  Ended ended;
  ended.out = read_ + take_all(out_, err_, ended.err);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  ended.status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

bool reaches_state(const std::string &pid, char state) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < end) {
    std::string line;
    std::getline(std::ifstream("/proc/" + pid + "/stat"), line);
    const std::size_t behind = line.rfind(')');
    if (behind != std::string::npos && line.size() > behind + 2 && line[behind + 2] == state) {
      return true;
    }
    sched_yield();
  }
  return false;
}

Ended run(const std::vector<std::string> &command, const std::vector<std::string> &extra_environment,
          const std::function<void()> &prepare) {
  return Child(command, extra_environment, prepare).wait();
}

Ended ration_run(std::vector<std::string> arguments, const std::vector<std::string> &extra_environment,
                 const std::function<void()> &prepare) {
  arguments.insert(arguments.begin(), {COMMAND_UNDER_TEST, "run"});
  return run(arguments, extra_environment, prepare);
}

int lines_in(const std::string &text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace run_test

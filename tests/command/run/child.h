// A child process of a test. No function sleeps. Threads: one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace run_test {

struct Ended {
  int status = -1;  // exit status, or 1000 + the signal that ended the child
  std::string out, err;
};

class Child {
 public:
  // `prepare` runs in the child before exec. If `terminal` is true, the child gets its own session and controlling
  // terminal, which is also its stdin. stdout and stderr are always pipes.
  Child(const std::vector<std::string> &command, const std::vector<std::string> &extra_environment = {},
        const std::function<void()> &prepare = {}, bool terminal = false);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  std::string read_line();                         // of its stdout; empty at its end
  void type(const std::string &keys) const;        // types at the child's terminal
  void await_echo(const std::string &text) const;  // waits until the terminal shows the text
  void hang_up();                                  // closes its terminal
  void signal(int number) const;
  void signal_group(int number) const;  // of the process group that it leads
  Ended wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1, terminal_ = -1;
  std::string read_;
};

Ended run(const std::vector<std::string> &command, const std::vector<std::string> &extra_environment = {},
          const std::function<void()> &prepare = {});

// `ration run` with these arguments.
Ended ration_run(std::vector<std::string> arguments, const std::vector<std::string> &extra_environment = {},
                 const std::function<void()> &prepare = {});

// True if the process reaches this state (proc_pid_stat(5)) within 30 seconds.
bool reaches_state(const std::string &pid, char state);

int lines_in(const std::string &text);

}  // namespace run_test

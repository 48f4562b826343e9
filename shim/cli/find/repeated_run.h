// Runs one command repeatedly, each time under `ration run`, and reports how each run ended. Layer: cli.
// Threads: the only one of the process. The process's signals are blocked during the object's lifetime.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"

namespace ration::cli {

struct RunEnd {
  int status = 0;          // the exit status from `ration run`; 128 + N if signal N ended the command
  bool timed_out = false;  // the run was ended because it took too long
  int interrupted_by = 0;  // the signal that we received and passed on; 0: none
  int our_error = 0;       // errno if a call of our own failed, so that nothing ran; 0: none failed
  std::chrono::milliseconds took{0};

  // The signal that ended the command or a child that the command waited for. Shells report both alike. 0: none.
  int signal() const;
  bool succeeded() const { return status == 0 && !timed_out && interrupted_by == 0 && our_error == 0; }
};

// "exit status 3", "killed by signal 11 (Segmentation fault)", "took longer than 10000 ms".
std::string end_text(const RunEnd &end);

class RepeatedRun {
 public:
  explicit RepeatedRun(const RunRequest &request);
  ~RepeatedRun();
  RepeatedRun(const RepeatedRun &) = delete;
  RepeatedRun &operator=(const RepeatedRun &) = delete;

  // The environment that the command gets in every run.
  EnvironmentBlock &environment() { return environment_; }
  // `options`: options of `ration run` to insert before the request's own. If stdin is a file, each run reads it from
  // the beginning; otherwise stdin is empty. `out`, `err`: file descriptors. `timeout` 0: no timeout.
  RunEnd run(const std::vector<std::string> &options, int out, int err, std::chrono::milliseconds timeout);

 private:
  struct Signals;
  const std::vector<std::string> own_options_;
  const std::vector<std::string> command_;
  EnvironmentBlock environment_;
  const std::unique_ptr<Signals> signals_;
};

// The value of --timeout. Without that option, ten times the duration of the first run, but at least ten seconds.
std::chrono::milliseconds timeout_after(std::optional<std::chrono::milliseconds> asked,
                                        std::chrono::milliseconds first_took);

// The command in the form that `ration ps` shows: its words, separated by blanks.
std::string in_one_line(const std::vector<std::string> &command);

// An error sentence if the request has a flag of `ration run` that the verb sets itself; empty otherwise.
std::string taken_flag(const RunRequest &request, const std::vector<std::string_view> &keys);

}  // namespace ration::cli

// Runs one command again and again, each time under `ration run`, and tells how each run ended. Layer: cli.
// Threads: the only one of the process, whose signals it blocks while it lives.
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
  int status = 0;          // of the command, as `ration run` has it: 128 + N where signal N ended it
  bool timed_out = false;  // it was ended
  int interrupted_by = 0;  // a signal that we got, and passed on
  int our_error = 0;       // errno: nothing ran
  std::chrono::milliseconds took{0};

  // The signal that ended the command, or a command of its own that it waited for (a shell reports it so); 0: none.
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

  // Of the command, in every run.
  EnvironmentBlock &environment() { return environment_; }
  // `options`: of `ration run`, before those of the request. A file on our stdin is read by each run from its start;
  // otherwise stdin is empty. `out`, `err`: descriptors. 0 as `timeout`: none.
  RunEnd run(const std::vector<std::string> &options, int out, int err, std::chrono::milliseconds timeout);

 private:
  struct Signals;
  const std::vector<std::string> own_options_;
  const std::vector<std::string> command_;
  EnvironmentBlock environment_;
  const std::unique_ptr<Signals> signals_;
};

// Of the option --timeout, or, where there is none, ten times what the first run took, and at least ten seconds.
std::chrono::milliseconds timeout_after(std::optional<std::chrono::milliseconds> asked,
                                        std::chrono::milliseconds first_took);

// One sentence where a flag of `ration run` is among the request's that the verb sets itself; empty otherwise.
std::string taken_flag(const RunRequest &request, const std::vector<std::string_view> &keys);

}  // namespace ration::cli

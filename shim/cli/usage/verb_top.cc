// `ration top`: shows live how much device memory each process holds. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <optional>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/usage/screen.h"
#include "cli/usage/snapshot.h"
#include "config/settings_context.h"

namespace ration::cli {

namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

int status_of(const Usage &usage) {
  return usage.problems.empty() ? 0 : kProblemSeen;
}

// Ends this process by the signal, so that its parent sees the signal in the exit status.
int end_by(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  return kKilled + signal;
}

int live(const StateFolders &folders, Clock::duration interval, Screen &screen, int &ended_by) {
  TopState state;
  state.is_unicode = screen.is_unicode();
  state.looked_in = where_looked(folders);
  NvmlProcess nvml;
  Usage usage = take_snapshot(folders, nvml);
  state.history.add(usage);
  auto due = Clock::now() + interval;
  while (!state.ended) {
    const Frame frame = frame_of(usage, state, screen.height(), screen.width());
    keep_on_screen(frame, state);
    screen.show(frame);
    const Screen::Input input = screen.wait(state.paused ? -1 : milliseconds_until(due));
    switch (input.event) {
      case Screen::Event::kKey:
        handle_key(input.value, state);
        if (state.order) {
          usage = take_snapshot(folders, nvml);
          state.message = carry_out(*state.order, usage);
          state.order.reset();
          usage = take_snapshot(folders, nvml);
        }
        break;
      case Screen::Event::kSignal:
        ended_by = input.value;
        return 0;
      case Screen::Event::kGone:
        return status_of(usage);
      case Screen::Event::kTimeout:
      case Screen::Event::kResized:
        break;
    }
    if (!state.paused && Clock::now() >= due) {
      usage = take_snapshot(folders, nvml);
      state.history.add(usage);
      due = Clock::now() + interval;
    }
  }
  return status_of(usage);
}

// nullopt if the terminal cannot be used.
std::optional<int> try_live(const StateFolders &folders, Clock::duration interval) {
  int ended_by = 0;
  int status = 0;
  {
    Screen screen(wants_colour());
    if (!screen.is_open()) {
      return std::nullopt;
    }
    status = live(folders, interval, screen, ended_by);
  }
  return ended_by != 0 ? end_by(ended_by) : status;
}

}  // namespace

int run_verb(const TopRequest &request) {
  const StateFolders folders = state_folders(request.all);
  if (folders.own.empty()) {
    return kOurError;
  }
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.interval_seconds));
  if (isatty(STDOUT_FILENO) == 1) {
    if (const std::optional<int> status = try_live(folders, interval)) {
      return *status;
    }
  }
  return usage_error(
      "top: it needs a terminal with a cursor, and a keyboard; `ration ps` prints the tables, `ration ps --watch` "
      "again "
      "and again",
      kUsageError);
}

}  // namespace ration::cli

// `ration top`: shows how much device memory each process holds, live or as a stream. Layer: cli.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <string_view>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/usage/screen.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/usage_json.h"
#include "config/settings_context.h"

namespace ration::cli {

namespace {

constexpr double kShortestSeconds = 0.1;
constexpr double kLongestSeconds = 86400;

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

int status_of(const Usage &usage) {
  return usage.problems.empty() ? 0 : kProblemSeen;
}

bool is_set_and_not_empty(std::string_view name) {
  const config::SettingsContext context = config::own_context();
  for (const char *entry : config::environment_of(context)) {
    if (entry != nullptr && std::string_view(entry).starts_with(name) && entry[name.size()] == '=') {
      return entry[name.size() + 1] != '\0';
    }
  }
  return false;
}

// Ends the process by the signal, so that its parent sees the signal in its exit status.
int end_by(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  return kKilled + signal;
}

int live(const StateFolders &folders, Clock::duration interval, Screen &screen, int &ended_by) {
  TopState state;
  state.is_unicode = screen.is_unicode();
  state.looked_in = where_looked(folders);
  Usage usage = take_snapshot(folders);
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
      usage = take_snapshot(folders);
      state.history.add(usage);
      due = Clock::now() + interval;
    }
  }
  return status_of(usage);
}

// None: the terminal cannot be used.
std::optional<int> try_live(const StateFolders &folders, Clock::duration interval) {
  int ended_by = 0;
  int status = 0;
  {
    Screen screen(!is_set_and_not_empty("NO_COLOR"));  // no-color.org
    if (!screen.is_open()) {
      return std::nullopt;
    }
    status = live(folders, interval, screen, ended_by);
  }
  return ended_by != 0 ? end_by(ended_by) : status;
}

// Waits. True as soon as the reader of stdout closes its end of the pipe, which poll(2) reports as an error.
bool reader_closed_within(int milliseconds) {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, milliseconds) > 0;
}

int stream(const StateFolders &folders, Clock::duration interval, bool once) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> logged;
  for (;;) {
    const auto due = Clock::now() + interval;
    const Usage usage = take_snapshot(folders);
    log_problems(usage, logged);
    errno = 0;
    if (!(std::cout << usage_json(usage, -1) << std::endl)) {
      if (errno == EPIPE) {
        return 0;  // the reader has closed the pipe
      }
      log_line(std::string("top: cannot write: ") + std::strerror(errno));
      return kOurError;
    }
    if (once || reader_closed_within(milliseconds_until(due))) {
      return once ? status_of(usage) : 0;
    }
  }
}

}  // namespace

int run_verb(const TopRequest &request) {
  const double seconds = request.interval_seconds;
  if (!(seconds >= kShortestSeconds && seconds <= kLongestSeconds)) {  // also false for NaN
    log_line("top: --interval takes seconds from 0.1 to 86400");
    return kUsageError;
  }
  const StateFolders folders = state_folders(request.all);
  if (folders.own.empty()) {
    return kOurError;
  }
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (request.json) {
    return stream(folders, interval, request.once);
  }
  if (!request.once && isatty(STDOUT_FILENO) == 1) {
    if (const std::optional<int> status = try_live(folders, interval)) {
      return *status;
    }
    log_line("top: this terminal cannot be used (unknown TERM, or no keyboard); printing once");
  }
  const Usage usage = take_snapshot(folders);
  const bool written = print_tables(usage, folders);
  std::vector<std::string> logged;
  log_problems(usage, logged);
  return written ? status_of(usage) : kOurError;
}

}  // namespace ration::cli

#include "cli/usage/screen.h"

#include <curses.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cli/usage/terminal_type.h"

namespace ration::cli {

namespace {

// Blocked, so that no handler of ncurses runs: those end the process at any point.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) {
    sigaddset(&set, each);
  }
  return set;
}

// A duplicate, so that fclose leaves stdin open.
FILE *open_keys() {
  if (isatty(STDIN_FILENO) == 1) {
    const int copy = dup(STDIN_FILENO);
    return copy < 0 ? nullptr : fdopen(copy, "r");
  }
  return std::fopen("/dev/tty", "re");
}

}  // namespace

Screen::Screen() {
  const sigset_t watched = watched_signals();
  sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  FILE *keys = open_keys();
  keys_ = keys;
  // Not initscr, which ends the process where the terminal's type is unknown.
  SCREEN *terminal =
      signals_ < 0 || keys == nullptr || !terminal_has_cursor() ? nullptr : newterm(nullptr, stdout, keys);
  terminal_ = terminal;
  if (terminal == nullptr) {
    return;
  }
  open_ = true;
  cbreak();
  noecho();
  nodelay(stdscr, TRUE);
  curs_set(0);
}

Screen::~Screen() {
  if (open_) {
    endwin();
    delscreen(static_cast<SCREEN *>(terminal_));
  }
  if (keys_ != nullptr) {
    std::fclose(static_cast<FILE *>(keys_));
  }
  if (signals_ >= 0) {
    close(signals_);
  }
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::size_t Screen::height() const {
  return static_cast<std::size_t>(std::max(getmaxy(stdscr), 1));
}

std::size_t Screen::width() const {
  return static_cast<std::size_t>(std::max(getmaxx(stdscr), 1));
}

void Screen::show(const Frame &frame) {
  werase(stdscr);
  for (std::size_t i = 0; i < frame.lines.size(); ++i) {
    const bool is_highlighted = i == frame.title_line || (i != 0 && i + 1 == frame.lines.size());
    wattrset(stdscr, static_cast<int>(is_highlighted ? A_REVERSE : A_NORMAL));
    std::string line = frame.lines[i];
    if (is_highlighted) {
      line.resize(width(), ' ');
    }
    // Writing the last cell returns an error although it is written: the cursor cannot advance.
    mvwaddnstr(stdscr, static_cast<int>(i), 0, line.c_str(), static_cast<int>(line.size()));
  }
  wrefresh(stdscr);
}

void Screen::follow_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    resizeterm(size.ws_row, size.ws_col);
  }
}

Screen::Input Screen::wait(int milliseconds) {
  FILE *keys = static_cast<FILE *>(keys_);
  pollfd watched[] = {{signals_, POLLIN, 0}, {fileno(keys), POLLIN, 0}};
  const int ready = poll(watched, 2, milliseconds);
  if (ready == 0) {
    return {Event::kTimeout, 0};
  }
  if (ready < 0 && errno != EINTR) {
    return {Event::kGone, 0};
  }
  if (ready < 0) {  // EINTR: continued after a stop, during which the terminal may have been resized
    follow_size();
    return {Event::kResized, 0};
  }
  signalfd_siginfo signal{};
  if (watched[0].revents != 0 && read(signals_, &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
    if (signal.ssi_signo != SIGWINCH) {
      return {Event::kSignal, static_cast<int>(signal.ssi_signo)};
    }
    follow_size();
    return {Event::kResized, 0};
  }
  const int key = wgetch(stdscr);
  if (key == ERR && (watched[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    return {Event::kGone, 0};
  }
  return {Event::kKey, key};
}

}  // namespace ration::cli

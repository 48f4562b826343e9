#include "cli/usage/screen.h"

#include <curses.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cli/base/text_width.h"
#include "cli/usage/terminal_type.h"

namespace ration::cli {

namespace {

// These signals are blocked, so that no handler of ncurses runs: its handlers end the process at any point.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) {
    sigaddset(&set, each);
  }
  return set;
}

// Opens a duplicate, so that fclose leaves stdin open.
FILE *open_keys() {
  if (isatty(STDIN_FILENO) == 1) {
    const int copy = dup(STDIN_FILENO);
    return copy < 0 ? nullptr : fdopen(copy, "r");
  }
  return std::fopen("/dev/tty", "re");
}

constexpr bool kCursesIsWide = RATION_WIDE_CURSES;  // it can write UTF-8
constexpr int kEscapeMs = 50;                       // how long to wait for the rest of what a key sends

// Colour pairs, with the terminal's own background.
enum Pair : short { kGreenPair = 1, kYellowPair, kCyanPair, kRedPair };

int key_of(int key) {
  switch (key) {
    case KEY_UP:
      return kUpKey;
    case KEY_DOWN:
      return kDownKey;
    case KEY_PPAGE:
      return kPageUpKey;
    case KEY_NPAGE:
      return kPageDownKey;
    case KEY_BACKSPACE:
    case 0x7f:
      return kEraseKey;
    case KEY_ENTER:
    case '\r':
      return kEnterKey;
    default:
      return key;
  }
}

}  // namespace

Screen::Screen(bool with_colours) {
  const sigset_t watched = watched_signals();
  sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  FILE *keys = open_keys();
  keys_ = keys;
  const bool is_utf8 = use_locale();
  // Not initscr, which would end the process if the terminal's type is unknown.
  SCREEN *terminal =
      signals_ < 0 || keys == nullptr || !terminal_has_cursor() ? nullptr : newterm(nullptr, stdout, keys);
  terminal_ = terminal;
  if (terminal == nullptr) {
    return;
  }
  open_ = true;
  unicode_ = kCursesIsWide && is_utf8;
  colours_ = with_colours && has_colors() && start_color() == OK && use_default_colors() == OK;
  if (colours_) {
    init_pair(kGreenPair, COLOR_GREEN, -1);
    init_pair(kYellowPair, COLOR_YELLOW, -1);
    init_pair(kCyanPair, COLOR_CYAN, -1);
    init_pair(kRedPair, COLOR_RED, -1);
  }
  set_escdelay(kEscapeMs);
  keypad(stdscr, TRUE);
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

// Nothing is shown by colour alone: bars have a different character for each part.
std::uint32_t Screen::attributes_of(Style style) const {
  const auto coloured = [this](Pair pair) {
    return static_cast<std::uint32_t>(colours_ ? static_cast<chtype>(COLOR_PAIR(pair)) : chtype{A_NORMAL});
  };
  switch (style) {
    case Style::kTitles:
    case Style::kCursor:
    case Style::kKeys:
      return A_REVERSE;
    case Style::kSorted:
      return A_REVERSE | A_BOLD;
    case Style::kUsed:
      return coloured(kGreenPair);
    case Style::kReserved:
      return coloured(kYellowPair);
    case Style::kOthers:
    case Style::kHistory:
      return coloured(kCyanPair);
    case Style::kWarning:
      return A_BOLD | coloured(kRedPair);
    case Style::kStrong:
      break;
  }
  return A_BOLD;
}

void Screen::show(const Frame &frame) {
  werase(stdscr);
  for (std::size_t i = 0; i < frame.lines.size(); ++i) {
    const int line = static_cast<int>(i);
    // Clears what an earlier line left here: a character may be wider than was assumed.
    wmove(stdscr, line, 0);
    wclrtoeol(stdscr);
    // Writing the last cell succeeds but returns an error, because the cursor cannot advance.
    mvwaddnstr(stdscr, line, 0, frame.lines[i].c_str(), static_cast<int>(frame.lines[i].size()));
  }
  for (const Frame::Span &span : frame.spans) {
    if (span.begin < width() && span.width != 0) {
      const std::uint32_t attributes = attributes_of(span.style);
      mvwchgat(stdscr, static_cast<int>(span.line), static_cast<int>(span.begin),
               static_cast<int>(std::min(span.width, width() - span.begin)), attributes & ~std::uint32_t{A_COLOR},
               static_cast<short>(PAIR_NUMBER(static_cast<int>(attributes))), nullptr);
    }
  }
  wrefresh(stdscr);
}

void Screen::follow_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    resizeterm(size.ws_row, size.ws_col);
  }
}

Screen::Input Screen::input_of(int key) {
  return key == ERR || key == KEY_RESIZE ? Input{Event::kTimeout, 0} : Input{Event::kKey, key_of(key)};
}

Screen::Input Screen::wait(int milliseconds) {
  // ncurses may have read more than one key and keeps the rest; no descriptor shows that.
  if (const int kept = wgetch(stdscr); kept != ERR) {
    return input_of(kept);
  }
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
  return input_of(key);
}

}  // namespace ration::cli

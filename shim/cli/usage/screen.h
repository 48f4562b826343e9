// A full-screen terminal. No other file uses ncurses, or handles the signals that end `ration top`. Layer: cli.
// Threads: one.
// Owns: the terminal's modes, the signal mask and a descriptor; the destructor restores them.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/usage/top_frame.h"

namespace ration::cli {

class Screen {
 public:
  // Opens stdout's terminal. Keys are read from stdin if that is a terminal, otherwise from the controlling terminal.
  // `with_colours` has an effect only if the terminal has colours.
  explicit Screen(bool with_colours);
  ~Screen();
  Screen(const Screen &) = delete;
  Screen &operator=(const Screen &) = delete;

  // False if the terminal's type is unknown or the terminal cannot be written to. In that case nothing was changed.
  [[nodiscard]] bool is_open() const { return open_; }
  // True if the locale uses UTF-8 and ncurses can write it. The constructor sets the locale for characters (LC_CTYPE).
  [[nodiscard]] bool is_unicode() const { return unicode_; }
  [[nodiscard]] std::size_t height() const;
  [[nodiscard]] std::size_t width() const;
  void show(const Frame &frame);

  enum class Event { kTimeout, kKey, kResized, kSignal, kGone };
  struct Input {
    Event event = Event::kTimeout;
    int value = 0;  // a signal's number, or a key (top_state.h names those that are not characters)
  };
  // Waits for the first event. Returns kTimeout after `milliseconds`, and kGone if the terminal was closed.
  Input wait(int milliseconds);

 private:
  static Input input_of(int key);
  void follow_size();
  [[nodiscard]] std::uint32_t attributes_of(Style style) const;

  bool open_ = false;
  bool unicode_ = false;
  bool colours_ = false;
  int signals_ = -1;  // a signalfd
  void *terminal_ = nullptr;
  void *keys_ = nullptr;  // a FILE
  sigset_t mask_before_{};
};

}  // namespace ration::cli

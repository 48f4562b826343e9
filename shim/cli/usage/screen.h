// A full-screen terminal: the only user of ncurses, and of the signals that end `ration top`. Layer: cli. Threads: one.
// Owns: the terminal's modes, the signal mask and a descriptor; the destructor restores them.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>

#include "cli/usage/top_frame.h"

namespace ration::cli {

class Screen {
 public:
  // Opens stdout's terminal. Keys are read from stdin or, where that is no terminal, from the controlling one.
  Screen();
  ~Screen();
  Screen(const Screen &) = delete;
  Screen &operator=(const Screen &) = delete;

  // False: the terminal's type is unknown, or it cannot be written to; nothing was changed.
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] std::size_t height() const;
  [[nodiscard]] std::size_t width() const;
  void show(const Frame &frame);

  enum class Event { kTimeout, kKey, kResized, kSignal, kGone };
  struct Input {
    Event event = Event::kTimeout;
    int value = 0;  // the key or the signal
  };
  // Waits for the first event; kTimeout after `milliseconds`. kGone: the terminal has been closed.
  Input wait(int milliseconds);

 private:
  void follow_size();

  bool open_ = false;
  int signals_ = -1;  // a signalfd
  void *terminal_ = nullptr;
  void *keys_ = nullptr;  // a FILE
  sigset_t mask_before_{};
};

}  // namespace ration::cli

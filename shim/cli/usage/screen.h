// The terminal, taken over for a while: the one door to ncurses, and to the signals that end a look at it.
// Layer: cli. Threads: one. Owns: the terminal's modes, the mask of signals and a descriptor; all given back at the
// end.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>

#include "cli/usage/top_frame.h"

namespace ration::cli {

class Screen {
 public:
  // Takes stdout's terminal over; keys come from stdin or, where that is no terminal, from the controlling one.
  Screen();
  ~Screen();
  Screen(const Screen &) = delete;
  Screen &operator=(const Screen &) = delete;

  // False: the terminal's type is not known, or it cannot be written to; nothing was changed.
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] std::size_t height() const;
  [[nodiscard]] std::size_t width() const;
  void show(const Frame &frame);

  enum class Event { kTime, kKey, kResized, kSignal, kGone };
  struct Happened {
    Event event = Event::kTime;
    int value = 0;  // the key or the signal
  };
  // Waits for what comes first; kTime after `milliseconds`. kGone: there is nobody at the terminal any more.
  Happened wait(int milliseconds);

 private:
  void follow_size();

  bool open_ = false;
  int signals_ = -1;  // a signalfd
  void *terminal_ = nullptr;
  void *keys_ = nullptr;  // a FILE
  sigset_t mask_before_{};
};

}  // namespace ration::cli

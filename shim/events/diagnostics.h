// Writes Ration's lines to stderr or to the file that RATION_DIAGNOSTICS names: warnings and, on request, decisions and
// reasons.
// Layer: events (a leaf). Threads: any; one write(2) a line, and no lock that a forked child could inherit. Never
// throws, keeps errno. REQUIRES: the caller holds no lock.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ration::events {

enum class Level { trace, debug, info, warn, off };

inline constinit std::atomic<Level> shown_from{Level::warn};
inline bool shows(Level level) noexcept {
  return level >= shown_from.load(std::memory_order_relaxed);
}

// Called once the settings are known. Lines are appended to the file `path`. They go to stderr if `path` is empty, or,
// with a warning, if the file cannot be written.
void begin_diagnostics(Level level, const std::string &path) noexcept;

// Writes the warning "ration: LINE". Newlines within it become spaces, so that one event is one line.
void say(std::string_view line) noexcept;

// A part of a line.
struct Word {
  Word(std::string_view words) : text(words) {}
  Word(const std::string &words) : text(words) {}
  Word(const char *words) : text(words) {}
  template <std::integral Number>
  Word(Number value) : number(static_cast<std::int64_t>(value)), is_number(true), is_signed(std::is_signed_v<Number>) {}

  std::string_view text{};
  std::int64_t number = 0;
  bool is_number = false;
  bool is_signed = false;
};
void write_line(Level level, std::initializer_list<Word> words) noexcept;

// Writes "ration[PID]: LEVEL: " and the words. If the level is not shown, a call costs only one load, so calls may be
// anywhere except in hits.
template <class... Words>
void explain(Level level, const Words &...words) noexcept {
  if (shows(level)) [[unlikely]] {
    write_line(level, {Word(words)...});
  }
}

}  // namespace ration::events

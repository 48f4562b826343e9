#include "events/diagnostics.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <string>

namespace ration::events {
namespace {

// The reader of stderr may be gone. A program that never writes there must not die of SIGPIPE because of this line.
void write_without_sigpipe(const spdlog::memory_buf_t &line) {
  sigset_t broken_pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  if (written < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec kAtOnce = {0, 0};
    sigtimedwait(&broken_pipe, nullptr, &kAtOnce);  // removes the signal that this write caused
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// spdlog's own stderr sinks lock a process-wide mutex, which a forked child may inherit locked. One write(2) needs no
// lock.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg &message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_without_sigpipe(line);
  }
  void flush_() override {}
};

spdlog::logger &logger() {
  static auto *leaked = [] {
    auto sink = std::make_shared<StderrSink>();
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%n: %v"));
    return new spdlog::logger("ration", std::move(sink));
  }();
  return *leaked;
}

}  // namespace

void say(std::string_view line) noexcept try {
  std::string one_line(line);
  for (char &c : one_line) {
    c = c == '\n' || c == '\r' ? ' ' : c;
  }
  logger().log(spdlog::level::warn, one_line);
} catch (...) {  // fails open
}

}  // namespace ration::events

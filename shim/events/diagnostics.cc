#include "events/diagnostics.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/quiet_write.h"
#include "base/visible.h"

namespace ration::events {
namespace {

// spdlog's own stderr sinks lock a process-wide mutex, which a forked child may inherit locked. One write(2) needs no
// lock.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg &message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_quietly(STDERR_FILENO, line.data(), line.size());
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
  logger().log(spdlog::level::warn, visible(line));
} catch (...) {  // fails open
}

}  // namespace ration::events

#include "events/diagnostics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/file_identity.h"
#include "base/lock.h"
#include "base/open_beyond_streams.h"
#include "base/out_of_reach.h"
#include "base/quiet_write.h"
#include "base/visible.h"

namespace ration::events {
namespace {

// A write within one page of a file happens completely or not at all, even if the process is killed or the disk is
// full. A pipe also takes this much in one piece (PIPE_BUF).
constexpr std::size_t kPage = 4096;

// The file of RATION_DIAGNOSTICS, never freed: a thread may be writing.
struct File {
  const std::string path;
  const FileIdentity identity;
  std::atomic<int> number;
};
constinit std::atomic<File *> file{nullptr};

// The identity of standard error when the settings were read; 0: it was closed, or a file of the program.
constinit std::atomic<dev_t> stream_device{0};
constinit std::atomic<ino_t> stream_inode{0};

int open_diagnostics(const std::string &path, struct stat &status) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  const int opened = open_beyond_streams(AT_FDCWD, path.c_str(), kFlags, 0666);
  if (opened < 0) {
    return -1;
  }
  const int number = out_of_reach(opened);
  const bool found = fstat(number, &status) == 0;
  if (!found || (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))) {
    const int error = found ? EINVAL : errno;
    close(number);
    errno = error;
    return -1;
  }
  return number;
}

// The file's descriptor. Opens the file again if the program has closed it, since its number may now be that of a file
// of the program. Below 0: the path leads elsewhere.
int descriptor_of(File &of, struct stat &status) {
  int number = of.number.load(std::memory_order_relaxed);
  if (number >= 0 && fstat(number, &status) == 0 && identity_of(status) == of.identity) {
    return number;
  }
  const int opened = open_diagnostics(of.path, status);
  if (opened < 0 || identity_of(status) != of.identity || !of.number.compare_exchange_strong(number, opened)) {
    if (opened >= 0) {
      close(opened);
    }
    return -1;
  }
  return opened;
}

// If the line would cross into the next page of the file, first fills the present page with blanks.
bool put_into(File &to, const spdlog::memory_buf_t &line) {
  struct stat status {};
  const int number = descriptor_of(to, status);
  if (number < 0) {
    return false;
  }
  spdlog::memory_buf_t filled;
  const std::size_t room = kPage - static_cast<std::size_t>(status.st_size) % kPage;
  if (S_ISREG(status.st_mode) && room < line.size() && line.size() <= kPage) {
    filled.resize(room);
    std::fill_n(filled.data(), room - 1, ' ');
    filled[room - 1] = '\n';
  }
  filled.append(line.data(), line.data() + line.size());
  return write_quietly(number, filled.data(), filled.size()) == static_cast<ssize_t>(filled.size());
}

bool is_standard_error() {
  struct stat status {};
  return fstat(STDERR_FILENO, &status) == 0 &&
         identity_of(status) ==
             FileIdentity{stream_device.load(std::memory_order_relaxed), stream_inode.load(std::memory_order_relaxed)};
}

void put(Level level, std::string_view text) {
  constexpr std::string_view kNames[] = {"trace", "debug", "info"};
  spdlog::memory_buf_t line;
  const auto append = [&](std::string_view more) { line.append(more.data(), more.data() + more.size()); };
  append("ration");
  if (level < Level::warn) {
    const fmt::format_int process(getpid());
    append("[");
    append({process.data(), process.size()});
    append("]: ");
    append(kNames[static_cast<int>(level)]);
  }
  append(": ");
  append(visible(text));
  if (level < Level::warn) {
    line.resize(std::min(line.size(), kPage - 1));
  }
  line.push_back('\n');
  File *const to = file.load(std::memory_order_acquire);
  if (to != nullptr ? !put_into(*to, line) && level == Level::warn : level == Level::warn || is_standard_error()) {
    write_quietly(STDERR_FILENO, line.data(), line.size());
  }
}

// Replaces the sinks of spdlog, which lock a mutex that a forked child may inherit locked, and may raise SIGPIPE.
// Design: design/log.md#diagnostics
class LineSink final : public spdlog::sinks::sink {
  void log(const spdlog::details::log_msg &message) override {
    put(static_cast<Level>(message.level), {message.payload.data(), message.payload.size()});
  }
  void flush() override {}
  void set_pattern(const std::string &) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};
static_assert(static_cast<int>(Level::trace) == spdlog::level::trace &&
              static_cast<int>(Level::warn) == spdlog::level::warn);

// In no registry of spdlog, and never destroyed. The level is checked before it is used.
spdlog::logger &logger() {
  static constinit std::atomic<spdlog::logger *> made{nullptr};
  spdlog::logger *known = made.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto fresh = std::make_unique<spdlog::logger>("ration", std::make_shared<LineSink>());
    fresh->set_level(spdlog::level::trace);
    fresh->set_error_handler([](const std::string &) {});
    if (made.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
      known = fresh.release();
    }
  }
  return *known;
}

// Notes the identity of standard error, unless it is a file that the program opened for itself after closing the
// stream. An inherited stream has no O_CLOEXEC, and a shell does not open the target of a redirection for reading.
void note_standard_error() {
  struct stat status {};
  const bool is_inherited = fstat(STDERR_FILENO, &status) == 0 && (fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC) == 0 &&
                            (!S_ISREG(status.st_mode) || (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) != O_RDWR);
  const FileIdentity found = is_inherited ? identity_of(status) : FileIdentity{};
  stream_device.store(found.device, std::memory_order_relaxed);
  stream_inode.store(found.inode, std::memory_order_relaxed);
}

}  // namespace

void begin_diagnostics(Level level, const std::string &path) noexcept try {
  shown_from.store(level, std::memory_order_relaxed);
  note_standard_error();
  struct stat status {};
  File *const inherited = file.load(std::memory_order_relaxed);
  if (inherited != nullptr && inherited->path == path && descriptor_of(*inherited, status) >= 0) {
    return;
  }
  const bool is_wanted = !path.empty() && level != Level::off;
  const int number = is_wanted ? open_diagnostics(path, status) : -1;
  const int error = errno;
  file.store(number >= 0 ? new File{path, identity_of(status), number} : nullptr, std::memory_order_release);
  if (is_wanted && number < 0) {
    const std::string why = error == EINVAL  ? "not a regular file"
                            : error == ELOOP ? "a symbolic link"
                                             : strerror(error);
    say("no diagnostics in " + path + ": " + why + "; they go to standard error");
  }
} catch (...) {  // fails open
}

void write_line(Level level, std::initializer_list<Word> words) noexcept {
  assert(!RankedMutex::is_any_held());
  const int error = errno;
  try {
    spdlog::memory_buf_t text;
    for (const Word &word : words) {
      if (word.is_number) {
        const fmt::format_int digits =
            word.is_signed ? fmt::format_int(word.number) : fmt::format_int(static_cast<std::uint64_t>(word.number));
        text.append(digits.data(), digits.data() + digits.size());
      } else {
        text.append(word.text.data(), word.text.data() + word.text.size());
      }
    }
    logger().log(static_cast<spdlog::level::level_enum>(level), spdlog::string_view_t(text.data(), text.size()));
  } catch (...) {  // fails open
  }
  errno = error;
}

void say(std::string_view line) noexcept {
  explain(Level::warn, line);
}

}  // namespace ration::events

#include "cli/run/ended_log.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/file_identity.h"
#include "logs/output/whole_file.h"
#include "logs/reader/log_reader.h"

namespace ration::cli {

namespace {

std::string folder_of(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// True if the path still leads to this file.
bool is_at(const std::string &path, const struct stat &file) {
  struct stat there {};
  return lstat(path.c_str(), &there) == 0 && identity_of(there) == identity_of(file);
}

}  // namespace

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  sigemptyset(&ending_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction present {};
    if (sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) {  // nohup ignores SIGHUP
      sigaddset(&ending_, number);
      sigaddset(&held, number);
    }
  }
  sigaddset(&held, SIGXFSZ);
  sigprocmask(SIG_BLOCK, &held, &inherited_);
}

HeldSignals::~HeldSignals() {
  sigaddset(&ending_, SIGXFSZ);
  while (is_taken() || errno == EINTR) {
  }
  sigprocmask(SIG_SETMASK, &inherited_, nullptr);
}

bool HeldSignals::is_taken() const {
  const timespec no_wait{};
  return sigtimedwait(&ending_, nullptr, &no_wait) > 0;
}

int open_ended(const std::string &path) {
  return open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

std::optional<logs::Record> meta_of_run(const std::string &path, std::int64_t pid, const std::string &folder) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {  // /dev/full would never end
    return std::nullopt;
  }
  logs::LogReader log(path);
  logs::Record meta;
  if (!log.next(meta) || static_cast<std::int64_t>(meta.number("pid")) != pid) {
    return std::nullopt;
  }
  const nlohmann::json env = meta.value("env");
  return env.is_object() && env.value("RATION_SUMMARY", nlohmann::json()) == folder ? std::optional(std::move(meta))
                                                                                    : std::nullopt;
}

std::string lock_log(int file, std::int64_t writer) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) {
    return "";
  }
  const bool has_locks = errno == EAGAIN || errno == EACCES;
  return has_locks || kill(static_cast<pid_t>(writer), 0) == 0 || errno == EPERM
             ? "a process that the command left behind still has it open"
             : "";
}

UnfinishedLog::UnfinishedLog(std::string target)
    : target_(std::move(target)), file_(open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  if (file_.number < 0) {
    temporary_ = logs::temporary_beside(target_);
    file_.number = mkostemp(temporary_.data(), O_CLOEXEC);
    temporary_ = file_.number < 0 ? "" : temporary_;
  }
}

UnfinishedLog::~UnfinishedLog() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

std::string UnfinishedLog::replace(const std::string &path, const struct stat &log) {
  if (fchmod(file_.number, log.st_mode & 0777) != 0 || (fsync(file_.number) != 0 && errno != EINVAL)) {
    return std::strerror(errno);
  }
  if (!is_at(path, log)) {
    return "it was renamed or replaced";
  }
  return take_name() ? "" : std::strerror(errno);
}

bool UnfinishedLog::take_name() {
  if (temporary_.empty()) {  // a link cannot replace a file, so it gets another name first
    const std::string nameless = "/proc/self/fd/" + std::to_string(file_.number);
    const std::string name = folder_of(target_) + "/.ration-" + std::to_string(getpid());
    if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return false;
    }
    temporary_ = name;
  }
  if (!file_.close() || std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    return false;
  }
  temporary_.clear();
  return true;
}

}  // namespace ration::cli

#include "events/log_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ration::events {
namespace {

constexpr int kMostSiblings = 1000;

// An open-file-description lock: released by the kernel with the last descriptor, so a dead process holds none.
bool lock_whole(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool first_line_bears(int file, const std::string &tree) {
  std::string head(64 * 1024, '\0');
  const ssize_t got = pread(file, head.data(), head.size(), 0);
  head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string_view line = std::string_view(head).substr(0, head.find('\n'));
  return line.find("\"tree\":\"" + tree + "\"") != std::string_view::npos;
}

}  // namespace

LogFile::Claim LogFile::try_claim(const std::string &path, const std::string &tree, std::string &problem) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) {
    problem = std::strerror(errno);
    if (file >= 0) {
      close(file);
    }
    return Claim::failed;
  }
  const bool regular = S_ISREG(status.st_mode);
  if (!regular && !S_ISCHR(status.st_mode)) {
    problem = "not a regular file";
    close(file);
    return Claim::failed;
  }
  if (regular) {
    if (!lock_whole(file) || first_line_bears(file, tree)) {
      close(file);
      return Claim::busy;
    }
    if (ftruncate(file, 0) != 0) {
      problem = std::strerror(errno);
      close(file);
      return Claim::failed;
    }
  }
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    most_bytes_ = limit.rlim_cur;
  }
  file_ = file;
  seekable_ = regular;
  path_ = path;
  return Claim::taken;
}

bool LogFile::claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem) {
  std::string candidate = path;
  for (int sibling = 0; sibling < kMostSiblings; ++sibling) {
    switch (try_claim(candidate, tree, problem)) {
      case Claim::taken:
        return true;
      case Claim::failed:
        return false;
      case Claim::busy:
        candidate = path;
        candidate.append(".").append(std::to_string(pid));
        if (sibling > 0) {
          candidate.append(".").append(std::to_string(sibling + 1));
        }
        break;
    }
  }
  problem = "every name beside it is taken";
  return false;
}

bool LogFile::write(std::string_view lines, std::string_view tail) {
  std::string joined;
  std::string_view text = lines;
  if (!tail.empty()) {
    joined.append(lines).append(tail);
    text = joined;
  }
  if (seekable_ && (text.size() > most_bytes_ || offset_ > most_bytes_ - text.size())) {
    return false;
  }
  const auto at = static_cast<off_t>(offset_);
  ssize_t written = 0;
  do {
    written = seekable_ ? pwrite(file_, text.data(), text.size(), at) : ::write(file_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(text.size())) {
    if (seekable_ && written > 0) {
      const int ignored = ftruncate(file_, at);  // take back the half line
      (void)ignored;
    }
    return false;
  }
  offset_ += lines.size();
  return true;
}

}  // namespace ration::events

#include "events/log_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/cancellation.h"
#include "base/open_beyond_streams.h"
#include "base/out_of_reach.h"

namespace ration::events {
namespace {

constexpr int kMostSiblings = 1000;
constexpr int kMostTries = 3;
constexpr int kMostMoves = 100;  // more means: paths and descriptors have different inode numbers here
constexpr std::uint64_t kLookNs = 250'000;

// Tries to take an open-file-description lock. The kernel releases it with the last descriptor, so a dead process holds
// none. On a file system without locks (ENOLCK, ENOSYS) the log is written all the same.
bool is_locked_elsewhere(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES);
}

constexpr std::uint64_t kPage = LogFile::kPage;

// A line of blanks. blanks(n) returns its last `n` characters, the newline included.
constexpr auto kBlanks = [] {  // static, because the caller's stack may be small
  std::array<char, kPage + 1> line{};
  line.fill(' ');
  line.back() = '\n';
  return line;
}();
std::string_view blanks(std::size_t n) {
  return {&kBlanks[kBlanks.size() - n], n};
}

std::uint64_t file_size_limit() {
  struct rlimit limit {};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// Opens the log under a number that is out of reach. If it were low, another thread of the program could close it by
// mistake between our check of the descriptor and the write, and then open a file under that number. Moving it keeps
// the open file description, and so its locks.
int open_log(const std::string &path, int flags, bool &in_reach, mode_t mode = 0) {
  const int file = open_beyond_streams(AT_FDCWD, path.c_str(), flags | O_NOCTTY | O_NONBLOCK, mode);
  const int moved = file >= 0 ? out_of_reach(file) : file;
  in_reach = moved == file;
  return moved;
}

bool first_line_bears(int file, const std::string &tree) {
  std::string head(64 * 1024, '\0');
  const ssize_t got = pread(file, head.data(), head.size(), 0);
  head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string_view line = std::string_view(head).substr(0, head.find('\n'));
  return line.find("\"tree\":\"" + tree + "\"") != std::string_view::npos;
}

// Also true of a file that is empty, or that ends within these characters.
bool begins_as_log(int file) {
  char head[kLogBegins.size()];
  const ssize_t got = pread(file, head, sizeof(head), 0);
  return got >= 0 &&
         std::string_view(head, static_cast<std::size_t>(got)) == kLogBegins.substr(0, static_cast<std::size_t>(got));
}

// Whether a file at `path` may be replaced.
bool is_log_or_absent(const std::string &path) {
  const int file = open_beyond_streams(AT_FDCWD, path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, 0);
  if (file < 0) {
    return errno == ENOENT;
  }
  struct stat status {};
  const bool is_log = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && begins_as_log(file);
  close(file);
  return is_log;
}

// True if a log there would cut the program's own output or mix with it. /dev/null is no problem.
bool is_standard_stream(const struct stat &status) {
  const bool null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  for (int stream = 0; stream <= 2 && !null; ++stream) {
    struct stat other {};
    if (fstat(stream, &other) == 0 && identity_of(other) == identity_of(status)) {
      return true;
    }
  }
  return false;
}

// The parent's latest log, as a forked child sees it. A fork may come between any two of these stores; a child that
// finds inconsistent values does not close the descriptor.
constinit std::atomic<int> latest_file{-1};
constinit std::atomic<dev_t> latest_device{0};
constinit std::atomic<ino_t> latest_inode{0};

void note_latest(int file, const struct stat &status) {
  latest_device.store(status.st_dev, std::memory_order_relaxed);
  latest_inode.store(status.st_ino, std::memory_order_relaxed);
  latest_file.store(file, std::memory_order_relaxed);
}

}  // namespace

void close_inherited_log() {
  const int file = latest_file.exchange(-1, std::memory_order_relaxed);
  FileIdentity found;
  if (file >= 0 && identify(file, found) &&
      found ==
          FileIdentity{latest_device.load(std::memory_order_relaxed), latest_inode.load(std::memory_order_relaxed)}) {
    close(file);
  }
}

LogFile::Claim LogFile::try_claim(const std::string &path, const std::string &tree, bool may_move,
                                  std::string &problem) {
  const int file = open_log(path, O_RDWR | O_CREAT, in_reach_, 0666);
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
  if (is_standard_stream(status)) {
    problem = "it is a standard stream of the program";
    close(file);
    return Claim::failed;
  }
  if (regular) {
    if (!begins_as_log(file)) {
      problem = "it is not a log, and stays as it is";
      close(file);
      return Claim::failed;
    }
    const bool is_locked = is_locked_elsewhere(file);
    struct stat there {};
    if (!is_locked && may_move && (stat(path.c_str(), &there) != 0 || identity_of(there) != identity_of(status))) {
      close(file);
      return Claim::moved;
    }
    if (is_locked || first_line_bears(file, tree)) {
      close(file);
      return Claim::busy;
    }
    if (status.st_size == 0 && status.st_uid == geteuid() && (status.st_mode & 0600) != 0600) {
      fchmod(file, (status.st_mode & 07777) | 0600);  // the umask removed the owner's permissions
    }
    if (ftruncate(file, 0) != 0) {
      problem = std::strerror(errno);
      close(file);
      return Claim::failed;
    }
  }
  file_ = file;
  seekable_ = regular;
  identity_ = identity_of(status);
  note_latest(file_, status);
  char absolute[PATH_MAX];
  path_ = realpath(path.c_str(), absolute) != nullptr ? absolute : path;
  return Claim::taken;
}

bool LogFile::claim(const std::string &path, const std::string &tree, std::int64_t pid, std::string &problem) {
  std::string candidate = path;
  int moved = 0;
  for (int sibling = 0; sibling < kMostSiblings; ++sibling) {
    switch (try_claim(candidate, tree, moved < kMostMoves, problem)) {
      case Claim::moved:  // since it was opened, its owner renamed it, or compressed and removed it
        ++moved;
        --sibling;
        break;
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
  problem = "all alternative names are taken";
  return false;
}

// A program may close descriptors that it did not open, and then get this number for a file of its own, into which no
// record must be written. In that case the log is opened again.
bool LogFile::is_open_still() {
  struct stat status {};
  if (fstat(file_, &status) == 0 && identity_of(status) == identity_) {
    return true;
  }
  const CancellationOff uncancelled;  // a hit comes here without
  bool in_reach = true;
  const int file = open_log(path_, O_RDWR, in_reach);
  if (file < 0) {
    return false;
  }
  if (fstat(file, &status) != 0 || identity_of(status) != identity_ || (seekable_ && is_locked_elsewhere(file))) {
    close(file);
    return false;
  }
  file_ = file;
  in_reach_ = in_reach;
  note_latest(file_, status);
  return true;
}

bool LogFile::begin_anew(std::string_view first_line) {
  const CancellationOff uncancelled;  // a hit comes here without
  const std::string fresh = path_ + ".new";
  const std::string previous = path_ + ".previous";
  struct stat status {};
  if (!is_log_or_absent(fresh) || !is_log_or_absent(previous) || !seekable_ || !within_size_limit(first_line.size()) ||
      !is_open_still() || fstat(file_, &status) != 0) {
    return false;
  }
  unlink(fresh.c_str());  // left by a process that was killed at this point
  bool in_reach = true;
  const int file = open_log(fresh, O_RDWR | O_CREAT | O_EXCL, in_reach, status.st_mode & 0777);
  if (file < 0) {
    return false;
  }
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || is_locked_elsewhere(file) ||
      pwrite(file, first_line.data(), first_line.size(), 0) != static_cast<ssize_t>(first_line.size()) ||
      rename(path_.c_str(), previous.c_str()) != 0) {
    unlink(fresh.c_str());
    close(file);
    return false;
  }
  if (rename(fresh.c_str(), path_.c_str()) != 0) {
    rename(previous.c_str(), path_.c_str());
    unlink(fresh.c_str());
    close(file);
    return false;
  }
  close(file_);
  file_ = file;
  in_reach_ = in_reach;
  identity_ = identity_of(status);
  note_latest(file_, status);
  offset_ = end_ = first_line.size();
  return true;
}

// Checks the size limit and the descriptor. The two system calls each cost a third to a half of a write, and the
// program seldom changes what they check, so they are mostly skipped. Changes of the limits are counted when the
// program makes them. A number that is out of reach is not reused within a quarter of a millisecond: a program that
// closes it would first have to open some thousand files.
// Design: design/fast-path.md#one-system-call-a-record
bool LogFile::look(std::uint64_t at_ns) {
  const std::uint32_t changes = limit_changes_ != nullptr ? __atomic_load_n(limit_changes_, __ATOMIC_ACQUIRE) : 0;
  if (limit_changes_ != nullptr && changes == changes_seen_ && !in_reach_ && at_ns - looked_at_ns_ < kLookNs) {
    return true;
  }
  changes_seen_ = changes;
  looked_at_ns_ = at_ns;
  size_limit_ = file_size_limit();  // a write beyond it would raise SIGXFSZ in the program
  return is_open_still();
}

// If the program has closed the log since the last look(), opens it again. Uses syscall(), which is no cancellation
// point: a hit writes its record with cancellation enabled, and saves the two atomic steps of libc's write in a program
// with several threads. Inlined, because the processor mostly mispredicts a return after a system call.
// Design: design/fast-path.md#ways-to-write-a-record
[[gnu::always_inline]] inline ssize_t LogFile::put_some(std::string_view text, std::uint64_t at) {
  for (int closed = 0;;) {
    const ssize_t written = seekable_ ? syscall(SYS_pwrite64, file_, text.data(), text.size(), at)
                                      : syscall(SYS_write, file_, text.data(), text.size());
    if (written >= 0 || (errno != EINTR && errno != EBADF)) {
      return written;
    }
    if (errno == EBADF && (++closed == kMostTries || !is_open_still())) {
      return -1;
    }
  }
}

bool LogFile::put(std::string_view text, std::uint64_t at) {
  return put_some(text, at) == static_cast<ssize_t>(text.size());
}

// Removes what a failed write left in the file.
void LogFile::cut(std::uint64_t end) {
  if (is_open_still()) {
    (void)!ftruncate(file_, static_cast<off_t>(end));
  }
}

// Linux checks for a fatal signal between the pages of one write, so a process that is killed there would leave half a
// line. Therefore no line crosses a page: the line before it is extended to the end of the page by blanks, which JSON
// readers skip. The write of these blanks also stays within its page.
bool LogFile::fill_page() {
  const std::uint64_t room = kPage - end_ % kPage;
  if (room == kPage) {
    return true;
  }
  if (!within_size_limit(end_ + room)) {
    error_ = EFBIG;
    return false;
  }
  if (!put(blanks(room + 1), end_ - 1)) {
    return false;
  }
  end_ += room;
  return true;
}

// How many blanks move a line of `bytes` to the next page; 0: it stays on this one.
std::size_t LogFile::blanks_before(std::size_t bytes) const {
  const std::uint64_t room = kPage - offset_ % kPage;
  const bool moves = seekable_ && offset_ != 0 && offset_ == end_ && bytes > room && bytes <= kPage && room != kPage &&
                     within_size_limit(end_ + room);
  return moves ? room : 0;
}

// Writes blanks and line in one write, without writev(2), which a sandbox may not allow. If the process is killed
// between the pages, only the blanks are left, and they end the line before.
bool LogFile::write_on_next_page(std::string_view text, std::size_t tail_bytes, std::size_t filling) {
  const std::uint64_t page_end = end_ + filling;
  const std::uint64_t end = page_end + text.size();
  const std::size_t fitting = within_size_limit(end) ? text.size() : 0;
  std::memcpy(two_pages_, blanks(filling + 1).data(), filling + 1);
  std::memcpy(two_pages_ + filling + 1, text.data(), fitting);
  const ssize_t written = put_some({two_pages_, filling + 1 + fitting}, end_ - 1);
  const bool whole = static_cast<std::uint64_t>(written) == filling + 1 + text.size();
  if (!whole) {
    error_ = fitting != text.size() ? EFBIG : written < 0 ? errno : ENOSPC;
  }
  if (written <= static_cast<ssize_t>(filling)) {
    if (written > 0) {  // the newline was overwritten
      put(blanks(1), end_ - 1);
      cut(end_);
    }
    return false;
  }
  offset_ = whole ? end - tail_bytes : page_end;
  end_ = whole ? end : page_end;
  if (!whole) {
    cut(end_);
  }
  return whole;
}

// Writes the new tail first, at the start of the next page, then the new line over the old tail. If the process is
// killed in between, both tails are left, with consecutive numbers, as the line and the tail would have. REQUIRES:
// there is a tail.
LogFile::Moved LogFile::move_tail(std::string_view text, std::size_t tail_bytes) {
  const std::uint64_t room = kPage - offset_ % kPage;
  const std::size_t line_bytes = text.size() - tail_bytes;
  const std::uint64_t page_end = offset_ + room;
  if (!seekable_ || offset_ == 0 || end_ > page_end || text.size() <= room || line_bytes == 0 || line_bytes > room ||
      tail_bytes > kPage || !within_size_limit(page_end + tail_bytes)) {
    return Moved::not_apt;
  }
  char line[kPage];
  std::memset(line, ' ', room);
  std::memcpy(line, text.data(), line_bytes - 1);
  line[room - 1] = '\n';
  if (!fill_page()) {
    return Moved::failed;
  }
  if (!put(text.substr(line_bytes), page_end) || !put({line, room}, offset_)) {
    cut(page_end);
    return Moved::failed;
  }
  offset_ = page_end;
  end_ = page_end + tail_bytes;
  return Moved::done;
}

bool LogFile::write(std::string_view text, std::size_t tail_bytes, std::uint64_t at_ns) {
  if (!look(at_ns)) {
    error_ = EBADF;
    return false;
  }
  if (const std::size_t filling = blanks_before(text.size()); filling > 0) {
    return write_on_next_page(text, tail_bytes, filling);
  }
  if (offset_ != end_) {
    error_ = ENOSPC;
    if (const Moved moved = move_tail(text, tail_bytes); moved != Moved::not_apt) {
      return moved == Moved::done;
    }
  }
  const std::uint64_t end = offset_ + text.size();
  if (seekable_ && !within_size_limit(end)) {
    error_ = EFBIG;
    return false;
  }
  const ssize_t written = put_some(text, offset_);
  const bool whole = written == static_cast<ssize_t>(text.size());
  if (!whole) {
    error_ = written < 0 ? errno : ENOSPC;
  }
  const std::uint64_t valid_end = whole ? end : offset_;  // a partial line is removed
  if (seekable_ && written > 0 && (!whole || end < end_)) {
    cut(valid_end);
  }
  if (whole) {
    offset_ = end - tail_bytes;
    end_ = end;
  }
  return whole;
}

}  // namespace ration::events

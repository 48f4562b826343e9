// Replaces the last lines of a log.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "events/log_file.h"

namespace ration::events {

// The lines are within one page, so a process that is killed meanwhile leaves either the old lines or the new ones.
std::string_view LogFile::last_lines(std::size_t bytes) {
  const CancellationOff uncancelled;
  const std::uint64_t begin = end_ - std::min<std::uint64_t>(end_, kPage + (end_ - 1) % kPage + 1);
  const std::size_t size = end_ - begin;
  if (!seekable_ || end_ == 0 || offset_ != end_ || !within_size_limit(end_) || !is_open_still() ||
      pread(file_, two_pages_, size, static_cast<off_t>(begin)) != static_cast<ssize_t>(size)) {
    return {};
  }
  for (std::size_t at = size - 1; at > 0; --at) {
    last_at_ = begin + at;
    if (two_pages_[at - 1] == '\n' && at + bytes <= size && last_at_ % kPage + bytes <= kPage) {
      return {two_pages_ + at, size - at};
    }
  }
  return {};
}

// Blanks overwrite the rest of the old lines, because a sandbox of the program may no longer allow the call that cuts a
// file.
bool LogFile::replace_last(std::string_view text, std::size_t tail_bytes) {
  const std::size_t size = std::max<std::size_t>(text.size(), end_ - last_at_);
  std::memset(two_pages_, ' ', size);
  std::memcpy(two_pages_, text.data(), text.size() - 1);
  two_pages_[size - 1] = '\n';
  if (!put({two_pages_, size}, last_at_)) {
    return false;
  }
  offset_ = last_at_ + text.size() - tail_bytes;
  end_ = last_at_ + size;
  return true;
}

}  // namespace ration::events

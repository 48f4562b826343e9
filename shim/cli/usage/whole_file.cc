#include "cli/usage/whole_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ration::cli {

namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string replace_file(const std::string &path, std::string_view text) {
  struct stat old {};
  if (lstat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
    return "it is not a regular file";  // rename would replace a device, or a link such as /dev/stdout
  }
  // In the same folder, because rename cannot cross file systems; hidden and not *.prom, so that no collector reads it.
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::string temporary = path.substr(0, name) + "." + path.substr(name) + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) {
    return std::strerror(errno);
  }
  const bool written = write_all(file, text) && fchmod(file, 0644) == 0;
  const int write_error = errno;
  // A network file system may report a failed write only when the file is closed.
  const bool closed = close(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  const int error = written ? errno : write_error;
  unlink(temporary.c_str());
  return std::strerror(error);
}

}  // namespace ration::cli

#include "logs/output/whole_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "events/log_file.h"
#include "logs/reader/log_input.h"

namespace ration::logs {

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

std::string temporary_beside(const std::string &path) {
  const std::size_t name = path.rfind('/') + 1;  // 0: the path has no folder
  return path.substr(0, name) + "." + path.substr(name) + ".XXXXXX";
}

bool is_log(const std::string &path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return false;
  }
  std::string head(events::kLogBegins.size(), '\0');
  LogInput(path).text().read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == events::kLogBegins;
}

std::string replace_file(const std::string &path, std::string_view text) {
  struct stat old {};
  if (lstat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
    return "it is not a regular file";  // rename would replace the device itself, or a link such as /dev/stdout
  }
  if (is_log(path)) {
    return "it is a log, and stays as it is";
  }
  std::string temporary = temporary_beside(path);
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

}  // namespace ration::logs

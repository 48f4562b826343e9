#include "config/files/small_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace ration::config {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostFiles = 256;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// strerror follows the program's locale and shares a static buffer with the program; strerrordesc_np needs glibc 2.32.
std::string words_of(int error) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return plain == nullptr ? "error " + std::to_string(error) : strerror_l(error, plain);
}

bool is_absent(int error) {
  return error == ENOENT || error == ENOTDIR;
}

std::string error_in_status(const struct stat &status, Trust trust) {
  if (S_ISDIR(status.st_mode)) {
    return "it is a folder";
  }
  if (!S_ISREG(status.st_mode)) {
    return "it is not a regular file";
  }
  if (trust == Trust::kOwnersOnly && status.st_uid != 0 && status.st_uid != geteuid()) {
    return "it belongs to another user (" + std::to_string(status.st_uid) + "); only yours or root's is read";
  }
  if (trust == Trust::kOwnersOnly && (status.st_mode & kWritableByOthers) != 0) {
    return "other users may write to it; run chmod go-w on it";
  }
  return {};
}

// Reads the whole file. Returns the error; empty: none. Counts the bytes because a file of /proc has size 0 and may be
// endless.
std::string read_all(int file, std::string &text) {
  char chunk[16384];
  for (;;) {
    const ssize_t got = read(file, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return words_of(errno);
    }
    if (got == 0) {
      return {};
    }
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) {
      text.clear();
      return "it is larger than 1 MiB; no settings file is";
    }
  }
}

bool is_json_name(std::string_view name) {
  constexpr std::string_view kEnding = ".json";
  return name.size() > kEnding.size() && name.front() != '.' && name.substr(name.size() - kEnding.size()) == kEnding;
}

}  // namespace

SmallFile read_small_file(const std::string &path, Trust trust) {
  SmallFile result;
  // O_NONBLOCK: a FIFO without a writer opens at once; fstat then tells that it is not a regular file.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0) {
    const int error = errno;
    struct stat status {};
    // If the process may not search the folder, the file counts as absent: a service may run with another user's HOME.
    const bool hidden = error == EACCES && trust == Trust::kOwnersOnly && stat(path.c_str(), &status) != 0;
    result.there = !is_absent(error) && !hidden;
    result.wrong = result.there ? words_of(error) : "";
    return result;
  }
  result.there = true;
  struct stat status {};
  if (fstat(file.number(), &status) != 0) {
    result.wrong = words_of(errno);
    return result;
  }
  result.wrong = error_in_status(status, trust);
  if (result.wrong.empty()) {
    result.wrong = read_all(file.number(), result.text);
  }
  return result;
}

Folder list_json_files(const std::string &path) {
  Folder folder;
  const std::unique_ptr<DIR, int (*)(DIR *)> stream(opendir(path.c_str()), closedir);
  if (stream == nullptr) {
    folder.wrong = errno == ENOENT ? "" : words_of(errno);
    return folder;
  }
  errno = 0;
  while (const dirent *entry = readdir(stream.get())) {
    if (is_json_name(entry->d_name)) {
      folder.names.emplace_back(entry->d_name);
    }
    if (folder.names.size() > kMostFiles) {
      folder.wrong = "more than " + std::to_string(kMostFiles) + " files of settings";
      break;
    }
    errno = 0;
  }
  if (errno != 0 && folder.wrong.empty()) {
    folder.wrong = words_of(errno);
  }
  std::sort(folder.names.begin(), folder.names.end());
  return folder;
}

}  // namespace ration::config

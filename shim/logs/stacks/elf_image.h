// Reads an ELF file from disk. A part of it is returned only if the file contains all of that part. The file may hold
// any bytes, and nothing in it is executed. Layer: logs. Owns: the open file.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace ration::logs {

class ElfImage {
 public:
  // The image is empty if `path` is not a regular file that can be read.
  explicit ElfImage(const std::string &path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (file_ >= 0 && fstat(file_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  ~ElfImage() {
    if (file_ >= 0) {
      close(file_);
    }
  }
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;

  bool is_elf() const { return piece(0, SELFMAG) == ELFMAG; }
  // Returns `bytes` from offset `at`, or an empty string if the file ends before that.
  std::string piece(std::uint64_t at, std::uint64_t bytes) const {
    std::string text(at <= size_ && bytes <= size_ - at ? bytes : 0, '\0');
    return read_at(at, text.data(), text.size()) ? text : std::string();
  }
  template <class Struct>
  std::optional<Struct> read(std::uint64_t at) const {
    Struct into;
    const bool is_there = at <= size_ && sizeof(into) <= size_ - at && read_at(at, &into, sizeof(into));
    return is_there ? std::optional<Struct>(into) : std::nullopt;
  }
  // The string at this offset, cut off after 4 KiB.
  std::string string_at(std::uint64_t at) const {
    const std::string text = piece(at, at <= size_ ? std::min<std::uint64_t>(size_ - at, 4096) : 0);
    return text.substr(0, text.find('\0'));
  }

 private:
  bool read_at(std::uint64_t at, void *into, std::size_t bytes) const {
    return pread(file_, into, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  }

  const int file_;
  std::uint64_t size_ = 0;
};

}  // namespace ration::logs

#include "logs/output/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>

#include "logs/output/whole_file.h"

namespace ration::logs {
namespace {

std::string reason_of(int error) {
  return error != 0 ? std::strerror(error) : "it cannot be written";
}

// The mode that a newly created file would get.
mode_t mode_of_new_file() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666U & ~mask;
}

}  // namespace

OutputFile::OutputFile(const std::optional<std::string> &path) {
  if (!path) {
    return;
  }
  const std::unique_ptr<char, void (*)(void *)> resolved(realpath(path->c_str(), nullptr), &std::free);
  path_ = resolved != nullptr ? std::string(resolved.get()) : *path;
  if (is_log(path_)) {
    problem_ = "it is a log, and stays as it is";
    return;
  }
  struct stat old {};
  const bool is_there = stat(path_.c_str(), &old) == 0;
  errno = 0;
  if (is_there && !S_ISREG(old.st_mode)) {
    file_.open(path_, std::ios::binary);
  } else {
    std::string beside = temporary_beside(path_);
    const int file = mkstemp(beside.data());
    if (file < 0) {
      problem_ = reason_of(errno);
      return;
    }
    temporary_ = beside;
    fchmod(file, is_there ? old.st_mode & 07777U : mode_of_new_file());
    close(file);
    file_.open(temporary_, std::ios::binary);
  }
  if (!file_) {
    problem_ = reason_of(errno);
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

std::ostream &OutputFile::stream() {
  return path_.empty() ? std::cout : file_;
}

bool OutputFile::commit() {
  errno = 0;
  std::ostream &out = stream();
  out.flush();
  if (!path_.empty()) {
    file_.close();
  }
  if (!out || (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0)) {
    problem_ = reason_of(errno);
    return false;
  }
  temporary_.clear();
  return true;
}

}  // namespace ration::logs

#include "logs/reader/progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "config/values/quotes.h"

namespace ration::logs {
namespace {

constexpr std::uint64_t kLeastBytes = 32U << 20U;
constexpr std::uint64_t kSteps = 100;

}  // namespace

Progress::Progress(const std::string &path) : path_(path) {
  struct stat status {};
  if (isatty(STDERR_FILENO) != 0 && stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) >= kLeastBytes) {
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
}

Progress::~Progress() {
  if (said_) {
    std::cerr << "\r\033[K" << std::flush;
  }
}

void Progress::say(std::uint64_t bytes) {
  std::cerr << "\rration: " << config::printable(path_) << ": " << std::min<std::uint64_t>(bytes * 100 / size_, 100)
            << "% read" << std::flush;
  next_ = bytes + size_ / kSteps;
  said_ = true;
}

}  // namespace ration::logs

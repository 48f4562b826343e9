#include "cli/run/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/launch/environment_block.h"
#include "config/settings.h"

namespace ration::cli {

namespace {

constexpr std::string_view kPrefix = "ration-";
constexpr std::string_view kRandom = "XXXXXX";
constexpr char kAlive[] = "/.alive";  // locked for as long as the folder's owner lives
constexpr int kMostLookedAt = 10'000;

// The file gets its final name once it is locked: a process that finds it unlocked knows that the folder's process has
// ended.
int lock_folder(const std::string &folder) {
  const std::string fresh = folder + "/.new";
  const int file = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0 && (flock(file, LOCK_EX | LOCK_NB) != 0 || rename(fresh.c_str(), (folder + kAlive).c_str()) != 0)) {
    close(file);
    return -1;
  }
  return file;
}

bool is_left(const std::string &folder) {
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid()) {
    return false;
  }
  const int file = open((folder + kAlive).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const bool ended = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
  if (file >= 0) {
    close(file);
  }
  return ended;
}

// Removes the folders of processes that were killed.
void remove_left_ones(const std::string &parent) {
  std::error_code error;
  std::filesystem::directory_iterator entry(parent, error);
  for (int looked = 0; !error && entry != std::filesystem::directory_iterator() && looked < kMostLookedAt; ++looked) {
    const std::string name = entry->path().filename().string();
    const std::string path = entry->path().string();
    entry.increment(error);
    std::error_code ignored;
    if (name.size() == kPrefix.size() + kRandom.size() && name.compare(0, kPrefix.size(), kPrefix) == 0 &&
        is_left(path)) {
      std::filesystem::remove_all(path, ignored);
    }
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string &parent) {
  const EnvironmentBlock environment(config::process_environment());
  for (const std::string &folder :
       {parent, environment.value("TMPDIR"), std::string("/tmp"), std::string("/dev/shm")}) {
    std::string name = folder + "/" + std::string(kPrefix) + std::string(kRandom);
    if (!folder.empty() && mkdtemp(name.data()) != nullptr) {
      chmod(name.c_str(), 0700);  // whatever the umask
      path_ = name;
      if (parent.empty()) {
        lock_ = lock_folder(path_);
        remove_left_ones(folder);
      }
      return;
    }
  }
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty() && !kept_) {
    std::error_code ignored;  // a folder that cannot be removed must not change the exit status
    std::filesystem::remove_all(path_, ignored);
  }
  if (lock_ >= 0) {
    close(lock_);
  }
}

}  // namespace ration::cli

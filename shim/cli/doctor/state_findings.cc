// Checks the folder with the groups' records: owner, mode, file system, space, locks. Never creates it. Layer: cli.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/base/text_table.h"
#include "cli/doctor/checkup.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "ledger/group_file.h"

namespace ration::cli::doctor {

namespace {

constexpr const char *kSharedMemory = "/dev/shm";
constexpr const char *kCost = "; a limit of each process holds all the same, and members of groups get no memory";
constexpr std::uint64_t kLeastSpace = 1U << 20U;  // for the files of a few groups
constexpr std::uint64_t kLeastFiles = 4;

struct KnownFileSystem {
  std::uint32_t type;  // linux/magic.h, statfs(2)
  const char *name;
  const char *trouble;  // nullptr: none
};
constexpr const char *kOfOneContainer = "an overlay is one container's alone, so processes of others do not meet there";
constexpr const char *kOverNetwork =
    "on a network's file system, locks and mapped files may not work between processes";
constexpr std::uint32_t kTmpfs = 0x01021994;
constexpr KnownFileSystem kFileSystems[] = {
    {kTmpfs, "tmpfs", nullptr},
    {0xef53, "ext4", nullptr},
    {0x58465342, "xfs", nullptr},
    {0x9123683e, "btrfs", nullptr},
    {0x794c7630, "overlay", kOfOneContainer},
    {0x6969, "NFS", kOverNetwork},
    {0xff534d42, "CIFS", kOverNetwork},
    {0xfe534d42, "SMB", kOverNetwork},
    {0x01021997, "9p", kOverNetwork},
    {0x65735546, "FUSE", kOverNetwork},
    {0x00c36400, "Ceph", kOverNetwork},
    {0x0bd00bd0, "Lustre", kOverNetwork},
    {0x47504653, "GPFS", kOverNetwork},
};

// 0 if unknown.
std::uint32_t statfs_type(const std::string &folder) {
  struct statfs mount {};
  return statfs(folder.c_str(), &mount) == 0 ? static_cast<std::uint32_t>(mount.f_type) : 0;
}

const KnownFileSystem *file_system_of(const std::string &folder) {
  const std::uint32_t type = statfs_type(folder);
  for (const KnownFileSystem &each : kFileSystems) {
    if (each.type == type) {
      return &each;
    }
  }
  return nullptr;
}

// Takes a lock as a member does, on a file that never has a name. Empty if that works or cannot be tried.
std::string error_of_lock(const std::string &folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    return {};
  }
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  const bool locked = fcntl(file, F_OFD_SETLK, &range) == 0;
  std::string error = locked ? "" : std::strerror(errno);
  close(file);
  return error;
}

void check_space(const std::string &folder, const std::string &on, Findings &found) {
  struct statvfs mount {};
  if (statvfs(folder.c_str(), &mount) != 0) {
    return;
  }
  if (mount.f_blocks == 0 && statfs_type(folder) != kTmpfs) {  // a tmpfs without a size limit reports no blocks either
    found.push_back(
        {Check::state_unusable, "the state folder " + on + " lies on a file system that has no space for files", {}});
    return;
  }
  const std::uint64_t free = std::uint64_t{mount.f_bavail} * mount.f_frsize;
  if (mount.f_blocks != 0 && free < kLeastSpace) {
    found.push_back({Check::state_full, "the file system of " + on + " has " + config::show_bytes(free) + " left", {}});
  }
  if (mount.f_files != 0 && mount.f_favail < kLeastFiles) {
    found.push_back({Check::state_no_inodes,
                     "the file system of " + on + " can have " + counted(mount.f_favail, "more file", "more files"),
                     {}});
  }
}

// Reports what makes the ledger refuse the folder. `folder` exists.
bool check_trust(const std::string &folder, const struct stat &status, Findings &found) {
  const std::string named = "the state folder " + config::printable(folder);
  if (!S_ISDIR(status.st_mode)) {
    found.push_back(
        {Check::state_not_folder, named + (S_ISLNK(status.st_mode) ? " is a link" : " is not a folder"), {}});
  } else if (status.st_uid != geteuid()) {
    found.push_back(
        {Check::state_foreign_owner,
         named + " belongs to user " + std::to_string(status.st_uid) + ", not to " + std::to_string(geteuid()),
         {}});
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    found.push_back({Check::state_open_to_others, named + ": other users may write to it", {}});
  } else if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    found.push_back({Check::state_unusable, named + " cannot be used: " + std::strerror(errno), {}});
  } else if (std::string problem; !ledger::open_state_folder(folder, false, problem) && !problem.empty()) {
    found.push_back({Check::state_unusable, problem, {}});
  } else {
    return true;
  }
  return false;
}

void check_shared_memory(Findings &found) {
  struct statvfs mount {};
  if (statvfs(kSharedMemory, &mount) != 0) {
    found.push_back({Check::shared_memory_missing, std::string(kSharedMemory) + ": " + std::strerror(errno), {}});
    return;
  }
  if ((mount.f_flag & ST_RDONLY) != 0) {
    found.push_back({Check::shared_memory_read_only, std::string(kSharedMemory) + " is mounted read-only", {}});
    return;
  }
  const std::uint64_t unit = mount.f_frsize;
  found.push_back({Check::shared_memory,
                   std::string(kSharedMemory) + ": " + config::show_bytes(unit * mount.f_blocks) + ", " +
                       config::show_bytes(unit * mount.f_bavail) + " free",
                   {}});
}

}  // namespace

Findings check_state_folder(const Checkup &checkup) {
  Findings found;
  const std::string folder = checkup.settings.state_folder();
  const std::string shown = config::printable(folder);
  struct stat status {};
  std::string where = folder;  // the nearest folder that exists
  bool is_usable = true;
  const bool is_there = lstat(folder.c_str(), &status) == 0;
  if (is_there) {
    is_usable = check_trust(folder, status, found);
  } else {
    const int reason = errno;
    where = std::filesystem::path(folder).parent_path().string();
    if (reason != ENOENT || access(where.c_str(), W_OK | X_OK) != 0) {
      found.push_back(
          {Check::state_unusable, "the state folder " + shown + " cannot be made: " + std::strerror(errno), {}});
      is_usable = false;
    }
  }
  if (is_usable) {
    const KnownFileSystem *on = file_system_of(where);
    check_space(where, shown, found);
    if (on != nullptr && on->trouble != nullptr) {
      found.push_back(
          {Check::state_file_system, "the state folder " + shown + " lies on " + on->name + ": " + on->trouble, {}});
    }
    if (const std::string error = error_of_lock(where); !error.empty()) {
      found.push_back({Check::state_no_locks, "files in " + shown + " cannot be locked: " + error, {}});
    }
    if (count_of(found, Severity::kTrouble) == 0) {
      found.push_back({Check::state_folder,
                       "state folder " + shown + (is_there ? "" : ", made by the first program that needs it") +
                           (on != nullptr ? std::string(", on ") + on->name : ""),
                       {}});
    }
  }
  for (Finding &each : found) {
    each.what += severity_of(each) == Severity::kTrouble ? kCost : "";
  }
  check_shared_memory(found);
  return found;
}

}  // namespace ration::cli::doctor

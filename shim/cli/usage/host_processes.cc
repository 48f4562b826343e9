#include "cli/usage/host_processes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/usage/snapshot.h"

namespace ration::cli {

namespace {

constexpr const char *kHostName = "/etc/hostname";
constexpr std::size_t kIdDigits = 64;     // a complete container ID
constexpr std::size_t kShownDigits = 12;  // the part of it that engines print

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// proc_pid_status(5): NSpid lists the IDs from the reader's namespace to the innermost.
int innermost_pid(const std::string &folder) {
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) {
      std::istringstream numbers(line.substr(6));
      int pid = 0;
      for (int each = 0; numbers >> each;) {
        pid = each;
      }
      return pid;
    }
  }
  return 0;
}

std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string container_of(const std::string &folder) {
  char own[256] = "";
  gethostname(own, sizeof(own) - 1);
  // The file as the container's programs see it: engines write each container's host name into it.
  std::string name = first_line(folder + "/root" + kHostName);
  if (!name.empty() && name != own) {
    return name;
  }
  std::ifstream cgroups(folder + "/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    if (std::string container = container_in_cgroup(line); !container.empty()) {
      return container;
    }
  }
  return {};
}

}  // namespace

std::string container_in_cgroup(std::string_view line) {
  for (std::size_t begin = 0; begin + kIdDigits <= line.size(); ++begin) {
    const bool starts = begin == 0 || !is_hexadecimal(line.substr(begin - 1, 1));
    const std::size_t end = begin + kIdDigits;
    const bool ends = end == line.size() || !is_hexadecimal(line.substr(end, 1));
    if (starts && ends && is_hexadecimal(line.substr(begin, kIdDigits))) {
      return std::string(line.substr(begin, kShownDigits));
    }
  }
  return {};
}

void HostProcesses::look() {
  looked_ = true;
  std::error_code error;
  for (std::filesystem::directory_iterator each("/proc", error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    int pid = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    struct stat space {};
    if (wrong != std::errc() || rest != name.data() + name.size() ||
        stat((each->path().string() + "/ns/pid").c_str(), &space) != 0 || space.st_ino == own_namespace_) {
      continue;
    }
    if (const int inside = innermost_pid(each->path().string()); inside != 0) {
      found_[{space.st_ino, inside}] = pid;
    }
  }
}

HostProcess HostProcesses::find(const ledger::ProcessIdentity &process) {
  if (own_namespace_ == 0) {
    own_namespace_ = own_pid_namespace();
  }
  if (process.pid_namespace == 0 || process.pid_namespace == own_namespace_) {
    return {};
  }
  if (!looked_) {
    look();
  }
  const auto found = found_.find({process.pid_namespace, process.pid});
  if (found == found_.end()) {
    return {};
  }
  return {found->second, container_of("/proc/" + std::to_string(found->second))};
}

}  // namespace ration::cli

#include "cli/usage/process_facts.h"

#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace ration::cli {

namespace {

constexpr std::size_t kMostOfCommand = 4096;

// "GPU UUID:", blanks, the UUID; question marks before the device was opened first.
std::string uuid_in(const std::filesystem::path &file) {
  constexpr std::string_view kTitle = "GPU UUID:";
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(kTitle)) {
      const std::size_t begin = line.find_first_not_of(" \t", kTitle.size());
      return begin == std::string::npos || line.find('?') != std::string::npos ? "" : line.substr(begin);
    }
  }
  return {};
}

}  // namespace

std::string command_line(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::string words(kMostOfCommand, '\0');
  file.read(words.data(), static_cast<std::streamsize>(words.size()));
  words.resize(static_cast<std::size_t>(file.gcount()));
  words.erase(words.find_last_not_of('\0') + 1);  // npos + 1 is 0
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

std::optional<std::uint32_t> owner_of(int pid) {
  struct stat found {};
  return stat(("/proc/" + std::to_string(pid)).c_str(), &found) == 0 ? std::optional(found.st_uid) : std::nullopt;
}

const std::string &user_name(std::uint32_t uid) {
  static std::map<std::uint32_t, std::string> names;
  const auto [at, is_new] = names.try_emplace(uid, std::to_string(uid));
  if (is_new) {
    if (const passwd *user = getpwuid(uid); user != nullptr && *user->pw_name != '\0') {
      at->second = user->pw_name;
    }
  }
  return at->second;
}

std::map<std::string, int> devices_of_machine(const std::string &folder) {
  std::vector<std::filesystem::path> devices;
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    devices.push_back(each->path());
  }
  std::sort(devices.begin(), devices.end());  // DOMAIN:BUS:DEVICE.FUNCTION, of one length
  std::map<std::string, int> indexes;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const std::string uuid = uuid_in(devices[i] / "information"); !uuid.empty()) {
      indexes[uuid] = static_cast<int>(i);
    }
  }
  return indexes;
}

}  // namespace ration::cli

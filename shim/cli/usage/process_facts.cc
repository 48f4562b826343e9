#include "cli/usage/process_facts.h"

#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace ration::cli {

namespace {

constexpr std::size_t kMostOfCommand = 4096;

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

}  // namespace ration::cli

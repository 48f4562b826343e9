#include "cli/launch/c_library.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/file_name.h"

namespace ration::cli {

std::string lacking_version(const ElfFile &program, const std::vector<std::string> &libraries) {
  std::error_code error;
  const std::filesystem::path linker = std::filesystem::canonical(program.interpreter, error);
  if (program.interpreter.empty() || error) {
    return "";
  }
  std::map<std::string, std::vector<std::string>> versions;  // the versions that each library there defines
  for (const std::string &library : libraries) {
    for (const NeededVersion &needed : read_elf(library).needed_versions) {
      const std::string path = (linker.parent_path() / needed.library).string();
      const auto [there, is_new] = versions.try_emplace(path);
      if (is_new) {
        there->second = read_elf(path).versions;
      }
      if (!there->second.empty() && std::ranges::find(there->second, needed.name) == there->second.end()) {
        return "it runs on " + path + ", which lacks the version " + needed.name + " that " +
               std::string(file_name(library)) + " needs";
      }
    }
  }
  return "";
}

void find_old_library(const Library &library, Program &program) {
  if (program.exit_status == 0 && program.obstacle == Obstacle::kNone) {
    program.reason = lacking_version(program.elf, {library.preload, library.core});
    program.obstacle = program.reason.empty() ? Obstacle::kNone : Obstacle::kOldLibrary;
  }
}

}  // namespace ration::cli

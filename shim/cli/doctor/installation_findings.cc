// Checks that the files of this installation exist, are readable and complete, and are for this machine. Layer: cli.
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/doctor/checkup.h"
#include "cli/doctor/loading_probe.h"
#include "cli/launch/c_library.h"
#include "cli/launch/elf_file.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

// False if the file ends before its last section header. The dynamic linker would map it nevertheless.
bool ends_where_it_says(const std::string &path) {
  ElfW(Ehdr) header{};
  struct stat status {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char *>(&header), sizeof(header)) || stat(path.c_str(), &status) != 0) {
    return false;
  }
  const auto sections = std::uint64_t{header.e_shnum} * header.e_shentsize;
  return header.e_shoff + sections <= static_cast<std::uint64_t>(status.st_size);
}

// True if nothing is wrong with the file.
bool check_part(const std::string &path, std::string_view name, Findings &found) {
  if (access(path.c_str(), R_OK) != 0) {
    const int reason = errno;
    const Check check = reason == EACCES ? Check::library_unreadable : Check::library_missing;
    found.push_back({check, path + ": " + std::strerror(reason), {}});
    return false;
  }
  const ElfFile elf = read_elf(path);
  struct statvfs mount {};
  if (statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOEXEC) != 0) {
    found.push_back({Check::library_noexec, path + " lies on a file system that is mounted noexec", {}});
  } else if (elf.is_elf && !elf.is_native) {
    found.push_back({Check::library_architecture, path + " was built for another machine or word size", {}});
  } else if (!elf.is_elf || !ends_where_it_says(path)) {
    found.push_back({Check::library_cut_short, path + " is not a complete ELF file", {}});
  } else if (elf.soname != name) {
    found.push_back({Check::library_other,
                     path + " is another library" + (elf.soname.empty() ? "" : ", " + config::printable(elf.soname)),
                     {}});
  } else {
    return true;
  }
  return false;
}

// True if nothing is wrong with the library.
bool check_library(const Library &library, const EnvironmentBlock &environment, Findings &found) {
  bool is_whole = true;
  // check_part() compares the name in the file (DT_SONAME), so the path by which a program loads it may differ.
  is_whole = check_part(library.preload, "libration.so", found) && is_whole;
  is_whole = check_part(library.core, "libration-core.so", found) && is_whole;
  if (is_whole) {
    if (const std::string lacks = lacking_version(read_elf("/proc/self/exe"), {library.preload, library.core});
        !lacks.empty()) {
      found.push_back({Check::library_old_c_library,
                       "the library cannot be loaded here: a program like this command: " + lacks,
                       {}});
      is_whole = false;
    }
  }
  if (is_whole) {
    for (const std::string &error : errors_of_loading(library, environment)) {
      found.push_back({Check::library_damaged, "the library cannot be loaded: " + config::printable(error), {}});
      is_whole = false;
    }
  }
  return is_whole;
}

}  // namespace

Findings check_installation(const Checkup &checkup) {
  Findings found;
  const Library &library = checkup.library;
  bool is_whole = check_library(library, checkup.probed, found);
  if (!can_be_preloaded(library.preload)) {
    found.push_back(
        {Check::library_path, library.preload + ": LD_PRELOAD cannot name a path with a blank or a colon", {}});
    is_whole = false;
  }
  if (const std::optional<Library> other = other_library(checkup)) {
    (void)check_library(*other, checkup.probed, found);
  }
  if (access((library.simulator + "/libcuda.so.1").c_str(), R_OK) != 0) {
    found.push_back({Check::simulator_missing, "there is no simulated driver in " + library.simulator, {}});
  }
  if (is_whole) {
    found.push_back({Check::installation, "Ration " RATION_VERSION ": " + library.preload, {}});
  }
  return found;
}

}  // namespace ration::cli::doctor

#include "cli/launch/program.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/file_name.h"
#include "cli/base/exit_status.h"

namespace ration::cli {

namespace {

constexpr std::size_t kLongestShebang = 256;  // BINPRM_BUF_SIZE
constexpr int kDeepestShebang = 5;            // the kernel's own bound; beyond it execve fails with ELOOP
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

// The errno with which executing the file would fail; 0 if its type and mode allow it.
int exec_error(const std::string &path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return errno;
  }
  if (!S_ISREG(status.st_mode)) {
    return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  }
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Searches as execvp(3): a file that may not be executed is skipped, and reported only if no other is found.
int find_in_path(const std::string &name, const std::string &search_path, std::string &found) {
  if (name.find('/') != std::string::npos) {
    found = name;
    return exec_error(name);
  }
  int denied = ENOENT;
  std::string_view rest = search_path;
  for (bool last = false; !last;) {
    const std::size_t end = rest.find(':');
    last = end == std::string_view::npos;
    const std::string folder(rest.substr(0, end));
    rest.remove_prefix(last ? rest.size() : end + 1);
    const std::string path = folder.empty() ? name : folder + "/" + name;
    const int reason = exec_error(path);
    if (reason == 0) {
      found = path.find('/') == std::string::npos ? "./" + path : path;
      return 0;
    }
    if (reason == EACCES || reason == EISDIR) {
      denied = EACCES;
    }
  }
  return denied;
}

// Reads security.capability (capabilities(7), <linux/capability.h>).
bool has_file_capabilities(const std::string &path) {
  vfs_ns_cap_data caps{};
  const ssize_t size = getxattr(path.c_str(), "security.capability", &caps, sizeof(caps));
  if (size < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) {
    return false;
  }
  const bool effective = (le32toh(caps.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE) != 0;
  return effective || caps.data[0].permitted != 0 ||
         (size >= static_cast<ssize_t>(XATTR_CAPS_SZ_2) && caps.data[1].permitted != 0);
}

// True if execve will set AT_SECURE (ld.so(8), the kernel's cap_bprm_creds_from_file).
bool gains_privileges(const std::string &path) {
  struct stat status {};
  struct statvfs mount {};
  if (stat(path.c_str(), &status) != 0 || (statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0) ||
      prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
    return false;
  }
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  // Setgid without the group's execute bit asks for mandatory locking and grants no privileges.
  const bool other_group =
      (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != getgid();
  return other_user || other_group || (getuid() != 0 && has_file_capabilities(path));
}

void find_obstacle(Program &program) {
  const ElfFile &elf = program.elf;
  if (!elf.is_elf) {
    return;  // execve will report it
  }
  if (!elf.is_native) {
    program.obstacle = Obstacle::kForeign;
    program.reason = "it was built for another machine or word size";
  } else if (gains_privileges(program.runs)) {
    program.obstacle = Obstacle::kSecure;
    program.reason = "it is setuid, setgid or has file capabilities, and then the dynamic linker ignores LD_PRELOAD";
  } else if (file_name(elf.interpreter).starts_with("ld-musl-")) {
    program.obstacle = Obstacle::kMusl;
    program.reason = "it runs on musl, whose dynamic linker cannot load a library built for glibc";
  } else if (elf.interpreter.empty() && !is_dynamic_linker(elf)) {
    program.obstacle = Obstacle::kStatic;
    program.reason = "it is statically linked, so no dynamic linker runs that could preload a library";
  }
}

void refuse(Program &program, const std::string &name, int reason) {
  program.exit_status = reason == ENOENT || reason == ENOTDIR ? kNotFound : kNotExecutable;
  program.reason =
      name + ": " +
      (reason == ENOENT && name.find('/') == std::string::npos ? "not found in PATH" : std::strerror(reason));
}

// `runs` is a script: the kernel puts `interpreter` before the script's path.
void prepend_interpreter(Program &program, std::vector<std::string> interpreter) {
  interpreter.push_back(program.runs);
  interpreter.insert(interpreter.end(), program.words.begin() + 1, program.words.end());
  program.words = std::move(interpreter);
}

}  // namespace

bool is_dynamic_linker(const ElfFile &elf) {
  return elf.soname.starts_with("ld-linux") || elf.soname.starts_with("ld64");
}

Shebang read_shebang(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char buffer[kLongestShebang];
  file.read(buffer, sizeof(buffer));
  std::string line(buffer, static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) {
    return {};
  }
  line = line.substr(2, line.find_first_of(std::string_view("\n\0", 2)) - 2);
  // As in the kernel, only blanks and tabs separate, so a carriage return is part of the name.
  constexpr const char *kBlanks = " \t";
  line.erase(line.find_last_not_of(kBlanks) + 1);
  line.erase(0, line.find_first_not_of(kBlanks));
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::size_t next = std::min(line.find_first_not_of(kBlanks, end), line.size());
  return {line.substr(0, end), line.substr(next)};
}

std::vector<std::string> command_of_env(const std::string &argument) {
  std::istringstream words(argument);
  std::vector<std::string> command;
  for (std::string word; words >> word;) {
    const bool begun = !command.empty();  // every further word belongs to the command
    if (!begun && (word == "-u" || word == "-C" || word == "--unset" || word == "--chdir")) {
      words >> word;  // its argument
    } else if (!begun && word.starts_with("-S") && word.size() > 2) {
      command.push_back(word.substr(2));
    } else if (begun || (word[0] != '-' && word.find('=') == std::string::npos)) {
      command.push_back(word);
    }
  }
  return command;
}

Program inspect_program(const std::string &name, const std::string &search_path) {
  const std::string path = search_path.empty() ? std::string(kDefaultPath) : search_path;
  Program program;
  if (const int reason = find_in_path(name, path, program.path); reason != 0) {
    refuse(program, name, reason);
    return program;
  }
  program.runs = program.path;
  program.words = {name};
  program.elf = read_elf(program.runs);
  program.for_shell = !program.elf.is_elf;
  for (int depth = 0; depth < kDeepestShebang && !program.elf.is_elf; ++depth) {
    const Shebang shebang = read_shebang(program.runs);
    if (shebang.interpreter.empty()) {
      prepend_interpreter(program, {"/bin/sh"});
      program.runs = "/bin/sh";
      program.elf = read_elf(program.runs);
      break;
    }
    if (const int reason = exec_error(shebang.interpreter); reason != 0) {
      refuse(program, program.runs + ": its interpreter " + shebang.interpreter, reason);
      return program;
    }
    std::vector<std::string> command = {shebang.interpreter};
    if (!shebang.argument.empty()) {
      command.push_back(shebang.argument);
    }
    std::string interpreter = shebang.interpreter;
    if (file_name(interpreter) == "env") {
      if (shebang.argument.ends_with('\r')) {  // the \r is part of the name that env looks for
        refuse(program, program.runs + ": its interpreter " + shebang.argument, ENOENT);
        return program;
      }
      std::string env_command;
      const std::vector<std::string> words = command_of_env(shebang.argument);
      if (!words.empty() && find_in_path(words.front(), path, env_command) == 0 && env_command != program.runs) {
        interpreter = env_command;  // if it is not found, env itself reports that
        command = words;
      }
    }
    prepend_interpreter(program, std::move(command));
    program.runs = interpreter;
    program.elf = read_elf(program.runs);
  }
  find_obstacle(program);
  return program;
}

}  // namespace ration::cli

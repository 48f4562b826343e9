// What /proc says of one process. Layer: cli. Threads: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

struct MappedFile {
  std::string path;  // without " (deleted)", as in the process's own mount namespace
  bool is_deleted = false;
};

struct ProcessFacts {
  int pid = 0;
  bool is_there = false;
  bool has_ended = false;         // a zombie
  bool is_kernel_thread = false;  // no program
  std::string name;
  uid_t user = 0;
  uid_t inner_user = 0;  // in its own user namespace, as of a rootless container
  int parent = 0;
  int inner_pid = 0;                                     // in its own PID namespace
  int seccomp = 0;                                       // 0: no filter
  std::uint64_t pid_namespace = 0, mount_namespace = 0;  // 0: may not be read
  std::string executable;                                // empty: may not be read
  std::vector<std::string> words;                        // its command line
  std::vector<std::string> environment;                  // at its start
  std::vector<MappedFile> files;                         // each once
  bool is_readable = false;                              // `environment`, `files`
  bool is_secure = false;                                // AT_SECURE

  // Empty where it is not set.
  [[nodiscard]] std::string variable(std::string_view name) const;
  // The first whose name begins so; nullptr: none.
  [[nodiscard]] const MappedFile *mapped(std::string_view name) const;
  // A path as this process can open it.
  [[nodiscard]] std::string reachable(const std::string &path) const;
};

ProcessFacts read_process(int pid);

}  // namespace ration::cli

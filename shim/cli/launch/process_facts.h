// The facts that /proc shows about one process. Layer: cli. Threads: values.
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
  bool is_kernel_thread = false;  // such a thread has no program
  std::string name;
  uid_t user = 0;
  uid_t inner_user = 0;  // the user's ID in its own user namespace, for example that of a rootless container
  int parent = 0;
  int inner_pid = 0;                                     // its ID in its own PID namespace
  int seccomp = 0;                                       // 0: no filter
  std::uint64_t pid_namespace = 0, mount_namespace = 0;  // 0: it could not be read
  std::string executable;                                // empty: it could not be read
  std::vector<std::string> words;                        // its command line
  std::vector<std::string> environment;                  // as it was at the start of the process
  std::vector<MappedFile> files;                         // each file once
  bool is_readable = false;                              // `environment` and `files` could be read
  bool is_secure = false;                                // AT_SECURE

  // Empty if the variable is not set.
  [[nodiscard]] std::string variable(std::string_view name) const;
  // The first file whose name begins with `name`; nullptr if there is none.
  [[nodiscard]] const MappedFile *mapped(std::string_view name) const;
  // The path of the process's file as our own process can open it.
  [[nodiscard]] std::string reachable(const std::string &path) const;
};

ProcessFacts read_process(int pid);

}  // namespace ration::cli

// Facts about one process, as /proc shows them. Layer: cli. Threads: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

struct MappedFile {
  std::string path;  // in the process's own mount namespace; without " (deleted)"
  bool is_deleted = false;
};

struct ProcessFacts {
  int pid = 0;
  bool is_there = false;
  bool has_ended = false;         // a zombie
  bool is_kernel_thread = false;  // kernel threads have no program
  std::string name;
  uid_t user = 0;
  uid_t inner_user = 0;  // the user ID in its own user namespace, such as a rootless container's
  int parent = 0;
  int inner_pid = 0;                                     // its ID in its own PID namespace
  int seccomp = 0;                                       // 0: no filter
  std::uint64_t pid_namespace = 0, mount_namespace = 0;  // 0: it could not be read
  std::string executable;                                // empty: unreadable
  std::vector<std::string> words;                        // its command line
  std::vector<std::string> environment;                  // as of the start of the process
  std::vector<MappedFile> files;                         // each file is listed once
  bool is_readable = false;                              // `environment` and `files` could be read
  bool is_secure = false;                                // AT_SECURE

  // Empty if the variable is not set.
  [[nodiscard]] std::string variable(std::string_view name) const;
  // The first mapped file whose name begins with `name`; nullptr if there is none.
  [[nodiscard]] const MappedFile *mapped(std::string_view name) const;
  // The path by which our own process can open a file that the process sees at `path`.
  [[nodiscard]] std::string reachable(const std::string &path) const;
};

ProcessFacts read_process(int pid);

}  // namespace ration::cli

// A child program with its own environment; provides its output line by line, and its exit status.
// Layer: none. Owns: the process (killed and reaped here at the latest) and both pipes.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace simcuda::conformance {

using Environment = std::map<std::string, std::string>;

class ChildProcess {
 public:
  // Runs these tests' child program, or another program, on the driver in the given folder.
  ChildProcess(const std::vector<std::string> &arguments, const Environment &environment,
               const std::string &driver_folder = SIMCUDA_FOLDER, const char *program = SIMCUDA_CHILD);
  ~ChildProcess();
  ChildProcess(const ChildProcess &) = delete;
  ChildProcess &operator=(const ChildProcess &) = delete;

  pid_t pid() const { return pid_; }
  void send(const std::string &line);
  std::string line();  // the next line of its output; empty at the end
  std::vector<std::string> lines();
  void close_input();
  void kill(int signal);
  int wait();  // exit status, or 128 + the signal that ended it

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE *output_ = nullptr;
};

// A new folder, removed with its contents by the destructor.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace simcuda::conformance

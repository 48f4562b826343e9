#include "tests/simcuda/conformance/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/catch.h"

extern char **environ;

namespace simcuda::conformance {
namespace {

// This process's environment without the driver's settings: each test sets all of those itself.
std::vector<std::string> with_environment(const Environment &wanted, const std::string &driver_folder) {
  std::vector<std::string> all;
  for (char **entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("SIMCUDA_", 0) != 0 && text.rfind("CUDA_", 0) != 0 && text.rfind("LD_LIBRARY_PATH=", 0) != 0) {
      all.push_back(text);
    }
  }
  all.push_back("LD_LIBRARY_PATH=" + driver_folder);
  for (const auto &[name, value] : wanted) all.push_back(name + "=" + value);
  return all;
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> all;
  for (std::string &text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string> &arguments, const Environment &environment,
                           const std::string &driver_folder, const char *program) {
  int in[2], out[2];
  REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> settings = with_environment(environment, driver_folder);
  REQUIRE(::posix_spawn(&pid_, program, &actions, nullptr, pointers(command).data(), pointers(settings).data()) == 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  output_ = ::fdopen(out[0], "r");
}

ChildProcess::~ChildProcess() {
  close_input();
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::fclose(output_);
}

void ChildProcess::send(const std::string &line) {
  const std::string text = line + "\n";
  REQUIRE(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

std::string ChildProcess::line() {
  char text[256];
  if (std::fgets(text, sizeof text, output_) == nullptr) return "";
  text[std::strcspn(text, "\n")] = '\0';
  return text;
}

std::vector<std::string> ChildProcess::lines() {
  std::vector<std::string> all;
  for (std::string next = line(); !next.empty(); next = line()) all.push_back(next);
  return all;
}

void ChildProcess::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void ChildProcess::kill(int signal) {
  ::kill(pid_, signal);
}

int ChildProcess::wait() {
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "simcuda-test-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace simcuda::conformance

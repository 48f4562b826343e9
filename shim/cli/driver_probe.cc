#include "cli/driver_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "cli/exit_status.h"
#include "cli/run/run_preparation.h"
#include "cli/run/temporary_folder.h"

namespace ration::cli {

namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kLongest{10};  // a driver's first use takes up to a few
constexpr std::chrono::milliseconds kBetween{5};

// A driver that hangs is left behind with its process, which is killed.
void wait_for(pid_t process) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return;
    }
    std::this_thread::sleep_for(kBetween);
  }
}

bool start(const EnvironmentBlock &environment, pid_t &process) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) {
    return false;
  }
  bool started = true;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    started = started && posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0) == 0;
  }
  char program[] = "ration";
  char verb[] = "env";
  char flag[] = "--answer-probe";
  char *const arguments[] = {program, verb, flag, nullptr};
  started = started && posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments,
                                   const_cast<char *const *>(environment.pointers().data())) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

}  // namespace

Json ask_driver(const RunRequest &request, EnvironmentBlock environment) {
  Library library;
  try {
    library = find_library();
  } catch (const Refusal &) {  // none beside this program
    return Json::array();
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return Json::array();
  }
  if (request.simulate) {
    simulate(*request.simulate, library, folder.path(), environment);
  }
  // It joins groups of its own, with the limits that are asked for, and leaves nothing but its log.
  environment.set("RATION_STATE_DIR", folder.path());
  environment.unset("RATION_SUMMARY");
  const std::string log = folder.path() + "/probe.jsonl";
  environment.set("RATION_LOG", log);
  environment.set("LD_PRELOAD", library.preload);
  pid_t process = 0;
  if (!start(environment, process)) {
    return Json::array();
  }
  wait_for(process);
  std::ifstream file(log);
  std::string line;
  std::getline(file, line);
  const Json meta = Json::parse(line, nullptr, false);
  return meta.is_object() && meta.contains("devices") ? meta["devices"] : Json::array();
}

int answer_probe() {
  void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) {
    return kOurError;
  }
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto total = reinterpret_cast<int (*)(std::size_t *, int)>(dlsym(driver, "cuDeviceTotalMem_v2"));
  std::size_t bytes = 0;
  return initialise != nullptr && total != nullptr && initialise(0) == 0 && total(&bytes, 0) == 0 ? 0 : kOurError;
}

}  // namespace ration::cli

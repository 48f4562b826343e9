#include "cli/run/free_memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstddef>
#include <iostream>

#include "cli/base/exit_status.h"

namespace ration::cli {

namespace {

constexpr int kLongestAnswerMs = 10'000;  // the first one starts NVML

bool start_answering(const EnvironmentBlock &environment, const int (&questions)[2], const int (&answers)[2],
                     pid_t &process) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) {
    return false;
  }
  char program[] = "ration";
  char verb[] = "probe";
  char question[] = "free-memory";
  char *const arguments[] = {program, verb, question, nullptr};
  const bool started = posix_spawn_file_actions_adddup2(&actions, questions[0], STDIN_FILENO) == 0 &&
                       posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO) == 0 &&
                       posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_RDWR, 0) == 0 &&
                       posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments,
                                   const_cast<char *const *>(environment.pointers().data())) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

struct NvmlMemory {
  unsigned long long total, free, used;
};

}  // namespace

FreeMemory::FreeMemory(EnvironmentBlock environment) {
  environment.unset("LD_PRELOAD");  // what the device has, not what a limit leaves
  int questions[2] = {-1, -1};
  int answers[2] = {-1, -1};
  if (pipe2(questions, O_CLOEXEC) != 0) {
    return;
  }
  if (pipe2(answers, O_CLOEXEC) != 0) {
    close(questions[0]);
    close(questions[1]);
    return;
  }
  if (!start_answering(environment, questions, answers, process_)) {
    process_ = -1;
  }
  close(questions[0]);
  close(answers[1]);
  questions_ = questions[1];
  answers_ = answers[0];
}

FreeMemory::~FreeMemory() {
  for (const int each : {questions_, answers_}) {
    if (each >= 0) {
      close(each);
    }
  }
  if (process_ > 0) {
    kill(process_, SIGKILL);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<std::uint64_t> FreeMemory::of(const std::string &uuid) {
  const std::string line = uuid + "\n";
  struct sigaction ignored {};
  struct sigaction before {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &before);
  const bool asked =
      questions_ >= 0 && write(questions_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  sigaction(SIGPIPE, &before, nullptr);
  std::string answer;
  while (asked && (answer.empty() || answer.back() != '\n')) {
    pollfd ready{answers_, POLLIN, 0};
    char some[64];
    const ssize_t got = poll(&ready, 1, kLongestAnswerMs) == 1 ? read(answers_, some, sizeof(some)) : 0;
    if (got <= 0) {
      return std::nullopt;
    }
    answer.append(some, static_cast<std::size_t>(got));
  }
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
  return error == std::errc() ? std::optional(bytes) : std::nullopt;
}

int answer_free_memory() {
  void *const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (nvml == nullptr) {
    return kOurError;
  }
  const auto initialise = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
  const auto by_uuid = reinterpret_cast<int (*)(const char *, void **)>(dlsym(nvml, "nvmlDeviceGetHandleByUUID"));
  const auto memory_of = reinterpret_cast<int (*)(void *, NvmlMemory *)>(dlsym(nvml, "nvmlDeviceGetMemoryInfo"));
  if (initialise == nullptr || by_uuid == nullptr || memory_of == nullptr || initialise() != 0) {
    return kOurError;
  }
  for (std::string uuid; std::getline(std::cin, uuid);) {
    void *device = nullptr;
    NvmlMemory memory{};
    if (by_uuid(uuid.c_str(), &device) == 0 && memory_of(device, &memory) == 0) {
      std::cout << memory.free;
    }
    std::cout << '\n' << std::flush;
  }
  return 0;
}

}  // namespace ration::cli

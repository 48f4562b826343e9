#include "cli/run/driver_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "cli/base/exit_status.h"
#include "cli/base/file_text.h"
#include "cli/run/run_preparation.h"
#include "cli/run/temporary_folder.h"
#include "ledger/device_key.h"

namespace ration::cli {

namespace {

constexpr std::chrono::seconds kLongest{10};  // the first use of a driver takes up to a few seconds
constexpr std::chrono::milliseconds kBetween{5};
constexpr char kNoUuid[] = "-";
// The only values of CUresult that are needed here.
constexpr int kNotInitialised = 3;
constexpr int kNoDevice = 100;

// If the driver hangs, kills the process.
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

}  // namespace

bool start_probe(const EnvironmentBlock &environment, const std::string &path, std::vector<std::string> words,
                 const ProbeStreams &streams, pid_t &process) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) {
    return false;
  }
  bool started = true;
  for (const auto &[from, to] : {std::pair(streams.input, STDIN_FILENO), std::pair(streams.output, STDOUT_FILENO),
                                 std::pair(streams.messages, STDERR_FILENO)}) {
    started = started && (from >= 0 ? posix_spawn_file_actions_adddup2(&actions, from, to)
                                    : posix_spawn_file_actions_addopen(&actions, to, "/dev/null", O_RDWR, 0)) == 0;
  }
  std::vector<char *> arguments;
  for (std::string &word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  started = started && posix_spawn(&process, path.c_str(), &actions, nullptr, arguments.data(),
                                   const_cast<char *const *>(environment.pointers().data())) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

LibraryAnswer ask_library(const RunRequest &request, EnvironmentBlock environment,
                          const std::optional<Library> &other) {
  LibraryAnswer answer;
  Library library;
  try {
    library = other ? *other : find_library();
  } catch (const Refusal &) {  // no library is installed with this program
    return answer;
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return answer;
  }
  if (request.simulate) {
    simulate(request, library, folder.path(), environment);
  }
  // The probe joins groups in this folder, with the limits that are asked for, and leaves nothing but its log.
  environment.set("RATION_STATE_DIR", folder.path());
  environment.unset("RATION_SUMMARY");
  const std::string log = folder.path() + "/probe.jsonl";
  environment.set("RATION_LOG", log);
  environment.set("LD_PRELOAD", library.preload);
  const std::string said = folder.path() + "/stderr";
  const int messages = open(said.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  pid_t process = 0;
  const bool started =
      start_probe(environment, kOwnProgram, {"ration", "probe", "library"}, {-1, -1, messages}, process);
  if (messages >= 0) {
    close(messages);
  }
  if (!started) {
    return answer;
  }
  wait_for(process);
  std::ifstream file(log);
  std::getline(file, answer.meta);
  answer.said = file_text(said).value_or("");
  return answer;
}

nlohmann::json ask_driver(const RunRequest &request, EnvironmentBlock environment) {
  const nlohmann::json meta = nlohmann::json::parse(ask_library(request, std::move(environment)).meta, nullptr, false);
  return meta.is_object() && meta.contains("devices") ? meta["devices"] : nlohmann::json::array();
}

std::string output_of(const EnvironmentBlock &environment, const std::string &path,
                      const std::vector<std::string> &words, bool with_messages) {
  int answers[2] = {-1, -1};
  pid_t process = 0;
  std::string text;
  if (pipe2(answers, O_CLOEXEC) != 0) {
    return text;
  }
  const bool started =
      start_probe(environment, path, words, {-1, answers[1], with_messages ? answers[1] : -1}, process);
  close(answers[1]);
  if (started) {
    wait_for(process);  // its output fits into the pipe
    char some[4096];
    for (ssize_t got = read(answers[0], some, sizeof(some)); got > 0; got = read(answers[0], some, sizeof(some))) {
      text.append(some, static_cast<std::size_t>(got));
    }
  }
  close(answers[0]);
  return text;
}

std::string ask_without_library(const EnvironmentBlock &environment, const char *question,
                                const std::vector<std::string> &files) {
  EnvironmentBlock plain = environment;
  plain.unset("LD_PRELOAD");
  std::vector<std::string> words = {"ration", "probe", question};
  words.insert(words.end(), files.begin(), files.end());
  return output_of(plain, kOwnProgram, words, false);
}

std::optional<std::vector<config::DeviceIdentity>> ask_devices(const EnvironmentBlock &environment) {
  std::vector<config::DeviceIdentity> devices;
  std::istringstream lines(ask_without_library(environment, "devices"));
  std::size_t count = 0;
  const bool is_answered = static_cast<bool>(lines >> count);
  for (config::DeviceIdentity device; lines >> device.uuid >> device.total_bytes;) {
    device.ordinal = static_cast<int>(devices.size());
    device.uuid = device.uuid == kNoUuid ? "" : device.uuid;
    devices.push_back(device);
  }
  return is_answered && devices.size() == count ? std::optional(devices) : std::nullopt;
}

int answer_devices() {
  void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto function = [&](const char *name) { return driver != nullptr ? dlsym(driver, name) : nullptr; };
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(function("cuInit"));
  const auto count_of = reinterpret_cast<int (*)(int *)>(function("cuDeviceGetCount"));
  const auto device_at = reinterpret_cast<int (*)(int *, int)>(function("cuDeviceGet"));
  const auto total_of = reinterpret_cast<int (*)(std::size_t *, int)>(function("cuDeviceTotalMem_v2"));
  void *const newer = function("cuDeviceGetUuid_v2");
  const auto uuid_of = reinterpret_cast<int (*)(char *, int)>(newer != nullptr ? newer : function("cuDeviceGetUuid"));
  int count = 0;
  const int begun = initialise != nullptr ? initialise(0) : kNotInitialised;
  if (begun != kNoDevice && (begun != 0 || count_of == nullptr || device_at == nullptr || count_of(&count) != 0)) {
    return kOurError;
  }
  std::cout << count << '\n';
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    std::size_t total = 0;
    char uuid[16] = {};
    if (device_at(&device, ordinal) != 0 || (total_of != nullptr && total_of(&total, device) != 0)) {
      return kOurError;
    }
    const bool has_uuid = uuid_of != nullptr && uuid_of(uuid, device) == 0;
    std::cout << (has_uuid ? ledger::uuid_text(uuid) : kNoUuid) << ' ' << total << '\n';
  }
  return std::cout.flush() ? 0 : kOurError;
}

int answer_library() {
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

#include "cli/run/device_figures.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/run/driver_probe.h"
#include "config/settings.h"

namespace ration::cli {

namespace {

using nlohmann::json;

constexpr int kLongestAnswerMs = 10'000;  // before its first answer, the process starts NVML
constexpr char kAllDevices[] = "*";

DeviceFigures figures_from(const json &row) {
  DeviceFigures figures;
  const auto number = [&row](const char *key) {
    return row.contains(key) ? std::optional(row[key].get<unsigned>()) : std::nullopt;
  };
  figures.uuid = row.value("uuid", "");
  figures.name = row.value("name", "");
  if (row.contains("index")) {
    figures.index = row["index"].get<int>();
  }
  if (row.contains("free")) {
    figures.memory = DeviceFigures::Memory{row["total"], row["free"], row["used"]};
  }
  figures.utilisation = number("utilisation");
  figures.temperature = number("temperature");
  for (const json &each : row.value("holders", json::array())) {
    figures.holders.push_back({each.at(0), each.at(1)});
  }
  return figures;
}

}  // namespace

NvmlProcess::NvmlProcess() : environment_(config::process_environment()) {}

void NvmlProcess::start() {
  was_started_ = true;
  environment_.unset("LD_PRELOAD");  // report what the device has, not what a limit leaves of it
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
  if (!start_probe(environment_, kOwnProgram, {"ration", "probe", "figures"}, {questions[0], answers[1], -1},
                   process_)) {
    process_ = -1;
  }
  close(questions[0]);
  close(answers[1]);
  questions_ = questions[1];
  answers_ = answers[0];
}

void NvmlProcess::stop() {
  for (int *each : {&questions_, &answers_}) {
    if (*each >= 0) {
      close(std::exchange(*each, -1));
    }
  }
  if (process_ > 0) {
    kill(process_, SIGKILL);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
}

NvmlProcess::~NvmlProcess() {
  stop();
}

// A process that has ended or hangs is not asked again.
std::vector<DeviceFigures> NvmlProcess::ask(const std::string &line) {
  if (!was_started_) {
    start();
  }
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
    char some[4096];
    const ssize_t got = poll(&ready, 1, kLongestAnswerMs) == 1 ? read(answers_, some, sizeof(some)) : 0;
    if (got <= 0) {
      break;
    }
    answer.append(some, static_cast<std::size_t>(got));
  }
  const json rows = json::parse(answer, nullptr, false);
  if (!rows.is_array()) {
    stop();
    return {};
  }
  std::vector<DeviceFigures> figures;
  std::transform(rows.begin(), rows.end(), std::back_inserter(figures), figures_from);
  return figures;
}

std::optional<DeviceFigures> NvmlProcess::of(const std::string &uuid) {
  const std::vector<DeviceFigures> figures = ask(uuid + "\n");
  return figures.empty() ? std::nullopt : std::optional(figures.front());
}

std::vector<DeviceFigures> NvmlProcess::all_and(const std::vector<std::string> &uuids) {
  std::string line = kAllDevices;
  for (const std::string &uuid : uuids) {
    line += " " + uuid;
  }
  return ask(line + "\n");
}

}  // namespace ration::cli

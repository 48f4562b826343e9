// First use, fork and exit: each in a process of its own, because a process has one runtime.
#include "runtime/runtime.h"

#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "policy/calls/device_memory.h"
#include "unit/events/child_process.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;
using runtime::Runtime;

namespace {

// What a process with these settings says on stderr when its runtime is built.
std::string said_with(const std::vector<std::pair<std::string, std::string>> &settings) {
  return stderr_of([&] {
    REQUIRE(exit_code_of([&] {
              for (const auto &[variable, value] : settings) {
                setenv(variable.c_str(), value.c_str(), 1);
              }
              return Runtime::get() != nullptr ? 0 : 1;
            }) == 0);
  });
}

std::size_t lines_in(const std::string &text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("settings that are right are silent") {
  CHECK(said_with({}).empty());
  CHECK(said_with({{"RATION_LIMIT", "40%"}, {"RATION_MODE", "direct"}, {"RATION_SHOW_LIMIT", "false"}}).empty());
}

TEST_CASE("each malformed setting is one line that names it") {
  const std::pair<std::string, std::string> malformed[] = {
      {"RATION_LIMIT", "8 potatoes"}, {"RATION_LIMIT", "two\nlines"}, {"RATION_MODE", "fast"},
      {"RATION_SHOW_LIMIT", "maybe"}, {"RATION_RESERVE", "-1"},       {"RATION_LIMITS", "8GiB"}};
  for (const auto &[variable, value] : malformed) {
    INFO(variable << "=" << value);
    const std::string said = said_with({{variable, value}});
    CHECK(lines_in(said) == 1);
    CHECK(said.find("ration: ") == 0);
    CHECK(said.find(variable) != std::string::npos);
  }
  CHECK(lines_in(said_with({{"RATION_MODE", "fast"}, {"RATION_LIMIT", "x"}})) == 2);
}

TEST_CASE("a log that cannot be had is one line and no reason not to run") {
  const ScratchFolder folder;
  const std::string said = said_with({{"RATION_LOG", folder / "missing/log"}});
  CHECK(said == "ration: no log: " + (folder / "missing/log") + ": No such file or directory\n");
}

TEST_CASE("threads that race for the runtime get one and the same, and one log") {
  const auto race = [] {
    std::vector<Runtime *> got(8);
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (Runtime *&place : got) {
      threads.emplace_back([&place, &go] {
        while (!go) {
          std::this_thread::yield();
        }
        place = Runtime::get();
      });
    }
    go = true;
    for (std::thread &thread : threads) {
      thread.join();
    }
    const bool same = std::all_of(got.begin(), got.end(), [&](Runtime *each) { return each == got[0]; });
    return same && got[0] != nullptr ? 0 : 1;
  };
  for (int round = 0; round < 20; ++round) {
    const ScratchFolder folder;
    REQUIRE(exit_code_of([&] {
              setenv("RATION_LOG", (folder / "log").c_str(), 1);
              return race();
            }) == 0);
    const std::filesystem::directory_iterator files(folder.path());
    REQUIRE(std::distance(begin(files), end(files)) == 1);
  }
}

TEST_CASE("a forked child gets books of its own, and its log beside its parent's") {
  const ScratchFolder folder;
  const std::string log = folder / "log";
  REQUIRE(exit_code_of([&]() -> int {
            become_test("child: forks and frees", {{"RATION_LOG", log}});
            return 1;
          }) == 0);
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path());
  }
  REQUIRE(names.size() == 2);
  std::sort(names.begin(), names.end());
  const std::vector<json> parent = log_lines(names[0]);
  const std::vector<json> child = log_lines(names[1]);
  CHECK(names[0] == log);
  CHECK(names[1] == log + "." + std::to_string(child.front().at("pid").get<int>()));
  CHECK(parent.front().at("tree") == child.front().at("tree"));
  CHECK(parent.back().at("null_frees") == 1);
  CHECK(child.back().at("null_frees") == 2);
  CHECK(parent.front().at("env").at("RATION_LOG") == log);
  CHECK(parent.front().at("settings").at("log").at("source") == "environment");
  CHECK(parent.front().at("mode") == "direct");
}

namespace {
void free_null() {
  REQUIRE(Runtime::get() != nullptr);
  (void)runtime::family<policy::DeviceMemory>->free("cuMemFree_v2", 0, [] { return CUDA_SUCCESS; });
}
}  // namespace

TEST_CASE("child: forks and frees", "[.]") {
  Runtime *const parents = Runtime::get();
  REQUIRE(parents != nullptr);
  free_null();
  const int status = [] {
    const pid_t pid = fork();
    if (pid == 0) {
      free_null();
      free_null();
      std::exit(0);  // the handlers run: this is where `end` is written
    }
    int ended = -1;
    waitpid(pid, &ended, 0);
    return ended;
  }();
  CHECK(status == 0);
  CHECK(Runtime::get() == parents);
}

// g++ 12's sanitizers may hold a lock of their own over such a fork, ThreadSanitizer that of atexit, AddressSanitizer
// one of its allocator's: the child waits for it for ever.
#if !defined(RATION_SANITIZED)
TEST_CASE("a child forked while other threads are in first use is not stuck") {
  // Which moment of the building the fork meets is chance; none may leave the child waiting for a thread it lacks.
  for (int round = 0; round < 20; ++round) {
    REQUIRE(exit_code_of([] {
              std::atomic<bool> go{false};
              std::thread first([&] {
                go = true;
                Runtime::get();
              });
              while (!go) {
                std::this_thread::yield();
              }
              const int code = exit_code_of([]() -> int {
                // Past a sanitizer's own end, which would complain of the thread that is only the parent's.
                syscall(SYS_exit_group, Runtime::get() != nullptr ? 0 : 1);
                return 2;
              });
              first.join();
              return code;
            }) == 0);
  }
}
#endif

TEST_CASE("a process that never used CUDA leaves no log, whether it exits or forks") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&]() -> int {
          become_test("child: does nothing", {{"RATION_LOG", folder / "log"}});
          return 1;
        }) == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("child: does nothing", "[.]") {
  CHECK(getenv("RATION_LOG") != nullptr);
}

TEST_CASE("the end counts the versions that nobody knew") {
  const ScratchFolder folder;
  REQUIRE(exit_code_of([&]() -> int {
            become_test("child: meets unknown versions", {{"RATION_LOG", folder / "log"}});
            return 1;
          }) == 0);
  CHECK(log_lines(folder / "log").back().at("unknown_versions") == 4);
}

TEST_CASE("child: meets unknown versions", "[.]") {
  static RationCoverage coverage;
  runtime::prepare({&coverage, nullptr});
  REQUIRE(Runtime::get() != nullptr);
  coverage.unknown_versions = 4;
}

// Several processes on one simulated machine: one physical memory, whichever processes live or die.
#include <signal.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/simcuda/conformance/child_process.h"

namespace simcuda::conformance {
namespace {

constexpr unsigned long long kMiB = 1ull << 20;
constexpr unsigned long long kContext = 16 * kMiB, kDevice = 1024 * kMiB;

Environment on(const Folder &machine, const std::string &devices = "1GiB") {
  return {{"SIMCUDA_MACHINE", machine.path() + "/machine"},
          {"SIMCUDA_DEVICES", devices},
          {"SIMCUDA_CONTEXT_BYTES", "16MiB"},
          {"SIMCUDA_RETURN_MS", "1"}};
}

// The monitor's output: first the bytes used, then a line per holder.
std::vector<std::string> used(const Folder &machine, unsigned long long expected) {
  ChildProcess monitor({"await_used", std::to_string(expected)}, on(machine));
  auto lines = monitor.lines();
  REQUIRE(monitor.wait() == 0);
  REQUIRE(!lines.empty());
  return lines;
}

TEST_CASE("processes that fill a device together get exactly its memory") {
  const Folder machine;
  constexpr unsigned kProcesses = 4;
  constexpr unsigned long long kBlock = 2 * kMiB;
  std::vector<std::unique_ptr<ChildProcess>> fillers;
  for (unsigned i = 0; i < kProcesses; ++i) {
    fillers.push_back(
        std::make_unique<ChildProcess>(std::vector<std::string>{"fill", std::to_string(kBlock)}, on(machine)));
  }
  for (auto &filler : fillers) REQUIRE(filler->line() == "ready");
  for (auto &filler : fillers) filler->close_input();
  unsigned long long blocks = 0;
  for (auto &filler : fillers) blocks += std::stoull(filler->line());
  CHECK(blocks == (kDevice - kProcesses * kContext) / kBlock);
  const auto seen = used(machine, kDevice);
  CHECK(seen[0] == std::to_string(kDevice));
  CHECK(seen.size() == 1 + kProcesses);
}

TEST_CASE("the memory of an exited process is reclaimed") {
  const Folder machine;
  ChildProcess holder({"hold", std::to_string(100 * kMiB)}, on(machine));
  REQUIRE(holder.line() == "0");
  const auto seen = used(machine, 100 * kMiB + kContext);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == std::to_string(100 * kMiB + kContext));
  CHECK(seen[1] == std::to_string(holder.pid()) + " " + seen[0]);
  holder.close_input();
  REQUIRE(holder.wait() == 0);
  CHECK(used(machine, 0) == std::vector<std::string>{"0"});
}

TEST_CASE("the memory of a killed process is available to another one") {
  const Folder machine;
  {
    ChildProcess holder({"hold", std::to_string(900 * kMiB)}, on(machine));
    REQUIRE(holder.line() == "0");
    ChildProcess refused({"hold", std::to_string(900 * kMiB)}, on(machine));
    CHECK(refused.line() == "2");
    holder.kill(SIGKILL);
    CHECK(holder.wait() == 128 + SIGKILL);
  }
  REQUIRE(used(machine, 0)[0] == "0");
  ChildProcess next({"hold", std::to_string(900 * kMiB)}, on(machine));
  CHECK(next.line() == "0");
}

TEST_CASE("memory of graphs is the machine's, and returns from a killed process") {
  const Folder machine;
  {
    ChildProcess holder({"hold_graph", std::to_string(600 * kMiB)}, on(machine));
    REQUIRE(holder.line() == "0");
    REQUIRE(used(machine, 608 * kMiB + kContext)[0] == std::to_string(608 * kMiB + kContext));
    ChildProcess refused({"hold_graph", std::to_string(600 * kMiB)}, on(machine));
    CHECK(refused.line() == "2");
    holder.kill(SIGKILL);
    CHECK(holder.wait() == 128 + SIGKILL);
  }
  REQUIRE(used(machine, 0)[0] == "0");
  ChildProcess next({"hold_graph", std::to_string(600 * kMiB)}, on(machine));
  CHECK(next.line() == "0");
}

TEST_CASE("processes killed at any point leave the figures correct") {
  const Folder machine;
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  ChildProcess survivor({"hold", std::to_string(64 * kMiB)}, on(machine));
  REQUIRE(survivor.line() == "0");
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<ChildProcess>> victims;
    for (int i = 0; i < 4; ++i) {
      victims.push_back(
          std::make_unique<ChildProcess>(std::vector<std::string>{"churn", std::to_string(random())}, on(machine)));
    }
    for (auto &victim : victims) REQUIRE(victim->line() == "ready");
    for (auto spin = random() % 20000; spin != 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    for (auto &victim : victims) victim->kill(SIGKILL);
    for (auto &victim : victims) REQUIRE(victim->wait() == 128 + SIGKILL);
    REQUIRE(used(machine, 64 * kMiB + kContext)[0] == std::to_string(64 * kMiB + kContext));
  }
}

TEST_CASE("a stopped process keeps its memory and blocks no other process") {
  const Folder machine;
  ChildProcess stopped({"churn", "7"}, on(machine));
  REQUIRE(stopped.line() == "ready");
  stopped.kill(SIGSTOP);
  ChildProcess next({"hold", std::to_string(kMiB)}, on(machine));
  CHECK(next.line() == "0");
  stopped.kill(SIGKILL);
}

TEST_CASE("the first process defines the machine's devices, and they keep their names") {
  const Folder machine, other;
  const auto lines = [](const Environment &environment) {
    ChildProcess child({"devices"}, environment);
    return child.lines();
  };
  const auto first = lines(on(machine, "2x1GiB"));
  REQUIRE(first.size() == 4);
  CHECK(lines(on(machine, "8GiB")) == first);
  const auto elsewhere = lines(on(other, "2x1GiB"));
  REQUIRE(elsewhere.size() == 4);
  CHECK(elsewhere[2] != first[2]);
}

TEST_CASE("an unusable machine folder is reported in one line, and there is no device") {
  ChildProcess child({"devices"}, {{"SIMCUDA_MACHINE", "/proc/no-such-folder"}});
  CHECK(child.line() == "999");
}

}  // namespace
}  // namespace simcuda::conformance

#include "paired.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace ration::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> environment_of(Under under) {
  std::vector<std::string> environment{"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=" RATION_SIM_DIRECTORY,
                                       "SIMCUDA_DEVICES=16GiB", "SIMCUDA_LATENCY_US=0", "SIMCUDA_COSTS=0"};
  if (under != Under::kNothing) {
    environment.insert(
        environment.end(),
        {"LD_PRELOAD=" + (under == Under::kPackaged ? packaged_library() : RATION_PRELOAD_LIBRARY), "RATION_LIMIT=50%",
         "RATION_PREALLOCATE_AFTER=0", under == Under::kRation ? "RATION_MODE=direct" : "RATION_MODE=pool",
         under == Under::kSlabs ? "RATION_BACKING=slab" : "RATION_BACKING=auto"});
  }
  if (under == Under::kLogged || under == Under::kStacks) environment.push_back(std::string("RATION_LOG=") + kBenchLog);
  if (under == Under::kStacks) environment.push_back("RATION_STACKS=native");
  return environment;
}

std::vector<char *> as_array(const std::vector<std::string> &strings) {
  std::vector<char *> array;
  for (const std::string &string : strings) array.push_back(const_cast<char *>(string.c_str()));
  array.push_back(nullptr);
  return array;
}

// `output` is the child's stdout, or -1 for ours. Returns the seconds until the child has ended.
double run(const std::vector<std::string> &command, Under under, int output) {
  const std::vector<std::string> environment = environment_of(under);
  const std::vector<char *> argv = as_array(command);
  const std::vector<char *> envp = as_array(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);

  const Clock::time_point start = Clock::now();
  pid_t child = 0;
  int status = 0;
  const int failure = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  if (failure == 0) waitpid(child, &status, 0);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error(command[0] + ": " + std::strerror(failure));
  if (status != 0) throw std::runtime_error(command[0] + ": wait status " + std::to_string(status));
  return seconds;
}

void keep_least(std::map<std::string, double> &least, const std::map<std::string, double> &round) {
  for (const auto &[name, value] : round) {
    const auto [entry, is_new] = least.emplace(name, value);
    if (!is_new) entry->second = std::min(entry->second, value);
  }
}

}  // namespace

Arguments read_arguments(int count, char **arguments, int default_rounds) {
  Arguments read{"", default_rounds};
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const bool has_value = i + 1 < count;
    if (name == "--json" && has_value) {
      read.json = arguments[++i];
    } else if (name == "--rounds" && has_value && std::atoi(arguments[i + 1]) > 0) {
      read.rounds = std::atoi(arguments[++i]);
    } else {
      std::fprintf(stderr, "usage: %s [--json FILE] [--rounds N]\n", arguments[0]);
      std::exit(2);
    }
  }
  return read;
}

std::string packaged_library() {
  const char *const path = std::getenv("RATION_BENCH_PACKAGED");
  return path != nullptr ? path : "";
}

void pin() {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  CPU_ZERO(&one);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &all)) continue;
    CPU_SET(static_cast<unsigned>(cpu), &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

double run_child(const std::vector<std::string> &command, Under under) {
  return run(command, under, -1);
}

std::map<std::string, double> child_figures(const std::vector<std::string> &command, Under under) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  run(command, under, ends[1]);  // a few lines fit into the pipe without a reader
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  std::istringstream lines(text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
  std::map<std::string, double> figures;
  std::string name;
  for (double value = 0; lines >> name >> value;) figures[name] = value;
  if (figures.empty()) throw std::runtime_error(command[0] + ": no figures");
  return figures;
}

double least_ns(int calls_in_a_batch, const std::function<void()> &batch) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBatches; ++i) {
    const Clock::time_point start = Clock::now();
    batch();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    least = std::min(least, ns / calls_in_a_batch);
  }
  return least;
}

void report(const std::string &bench, const std::vector<Figure> &figures, const std::string &json) {
  std::ostringstream text;
  text << "{\"schema\":\"ration.bench/1\",\"bench\":\"" << bench << "\",\"figures\":[";
  for (const Figure &figure : figures) {
    const double difference = figure.with - figure.without;
    const double ratio = figure.with / figure.without;
    std::printf("%-6s %-24s without %9.1f  with %9.1f  difference %+8.1f %s  ratio %.3f\n", bench.c_str(),
                figure.name.c_str(), figure.without, figure.with, difference, figure.unit.c_str(), ratio);
    text << (&figure == figures.data() ? "" : ",") << "{\"name\":\"" << figure.name << "\",\"unit\":\"" << figure.unit
         << "\",\"without\":" << figure.without << ",\"with\":" << figure.with << ",\"difference\":" << difference
         << ",\"ratio\":" << ratio << "}";
  }
  text << "]}\n";
  if (json.empty()) return;
  std::ofstream file(json);
  file << text.str();
  if (!file.flush()) throw std::runtime_error("cannot write " + json);
}

int compare_children(const std::string &bench, int count, char **arguments, Under with_ration) {
  try {
    const Arguments read = read_arguments(count, arguments, 6);
    const std::vector<std::string> child{"/proc/self/exe", "--child"};
    pin();
    std::map<std::string, double> without, with;
    for (int i = 0; i < read.rounds; ++i) {
      keep_least(without, child_figures(child, Under::kNothing));
      keep_least(with, child_figures(child, with_ration));
    }
    std::vector<Figure> figures;
    for (const auto &[name, value] : without) figures.push_back({name, "ns", value, with.at(name)});
    report(bench, figures, read.json);
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench_%s: %s\n", bench.c_str(), failure.what());
    return 1;
  }
}

int run_bench(const std::string &bench, int count, char **arguments, int default_rounds,
              void (*run)(const Arguments &)) {
  try {
    run(read_arguments(count, arguments, default_rounds));
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench_%s: %s\n", bench.c_str(), failure.what());
    return 1;
  }
}

}  // namespace ration::bench

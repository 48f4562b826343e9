// Measures the same work with and without Ration in child processes that take turns, so that a drifting clock rate
// affects both. Prints and writes both figures, their difference and their ratio. Threads: one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ration::bench {

// `--json FILE` and `--rounds N` on a benchmark's command line; other arguments end the program.
struct Arguments {
  std::string json;
  int rounds;
};
Arguments read_arguments(int count, char **arguments, int default_rounds);

// Runs `run` with the benchmark's arguments and reports an exception on stderr. Returns the exit status.
int run_bench(const std::string &bench, int count, char **arguments, int default_rounds,
              void (*run)(const Arguments &));

enum class Under { kNothing, kRation, kPool, kSlabs, kLogged, kStacks, kPackaged };

// The library of a package ($RATION_BENCH_PACKAGED), measured in turn with this build's; empty if there is none.
std::string packaged_library();

// The log of a child under kLogged, in the current folder.
inline constexpr char kBenchLog[] = "bench_log.jsonl.tmp";

// Keeps this process, and its children, on one processor.
void pin();

// Runs `command` to its end. Its environment contains only PATH, the simulated driver and what `under` requires.
// kRation: the library in mode direct with a limit. kPool: the same in mode pool, preallocated. kSlabs: like kPool, but
// with slabs instead of granules. kLogged: like kPool, with a log. kPackaged: like kPool, with packaged_library().
// Throws if the exit status is not 0. Returns the seconds from before the spawn to its end.
double run_child(const std::vector<std::string> &command, Under under);

// Like run_child(), but returns the child's output: lines `NAME NANOSECONDS`.
std::map<std::string, double> child_figures(const std::vector<std::string> &command, Under under);

inline constexpr int kBatches = 15;
// To be called in a child. Returns the minimum time per call over several batches, in nanoseconds.
double least_ns(int calls_in_a_batch, const std::function<void()> &batch);

struct Figure {
  std::string name;
  std::string unit;
  double without;
  double with;
};

// Prints one line for each figure, and writes the figures to the file `json` unless that is empty.
void report(const std::string &bench, const std::vector<Figure> &figures, const std::string &json);

// The usual benchmark: runs this program as `SELF --child`, `rounds` times each way in turn, and reports the
// minimum of each figure.
int compare_children(const std::string &bench, int count, char **arguments, Under with_ration = Under::kRation);

}  // namespace ration::bench

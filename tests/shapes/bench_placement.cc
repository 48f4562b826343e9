// Smallest arena over peak of the real pool and of each policy, on many seeds of every shape. One line for each policy
// and shape, so that any tool can sort them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "shapes/arena.h"
#include "shapes/shapes.h"
#include "tests/bench/pool_replay/replay.h"

using namespace ration::shapes;
using ration::pool::replay::Trace;

namespace {

struct Row {
  std::vector<double> ratios;
  std::size_t most_holes = 0;

  void print(const std::string &shape, const std::string &policy) const {
    double sum = 0;
    for (const double ratio : ratios) sum += ratio;
    std::printf("%-12s %-24s %8.4f %8.4f %7zu  ", shape.c_str(), policy.c_str(),
                sum / static_cast<double>(ratios.size()), *std::max_element(ratios.begin(), ratios.end()), most_holes);
    for (const double ratio : ratios) std::printf(" %.4f", ratio);
    std::printf("\n");
    std::fflush(stdout);
  }
};

double ratio(std::uint64_t bytes, const Trace &trace) {
  return static_cast<double>(bytes) / static_cast<double>(trace.peak_bytes);
}

// All policies on the traces of one shape.
void compare(const std::string &shape, const std::vector<Trace> &traces, const std::string &only) {
  Row pool;
  for (const Trace &trace : traces) pool.ratios.push_back(ratio(ration::pool::replay::find_minimum(trace), trace));
  pool.print(shape, "the pool");
  for (const NamedPolicy &policy : policies()) {
    if (!only.empty() && policy.name.find(only) == std::string_view::npos) continue;
    Row row;
    for (const Trace &trace : traces) {
      const Smallest smallest = smallest_arena(trace, policy);
      row.ratios.push_back(ratio(smallest.bytes, trace));
      row.most_holes = std::max(row.most_holes, smallest.most_holes);
    }
    row.print(shape, std::string(policy.name));
  }
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app("Compares placement policies on traces: smallest arena / peak of live bytes");
  std::vector<std::string> names;
  for (const Shape &shape : all()) names.emplace_back(shape.name);
  std::vector<std::string> chosen = names;
  std::uint64_t first = 1;
  std::uint64_t seeds = 5;
  double length = 1;
  std::string folder;
  std::string only;
  app.add_option("--shape", chosen, "only these shapes")->check(CLI::IsMember(names));
  app.add_option("--first", first, "the first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "how many seeds of each shape; 0 = only the files")->capture_default_str();
  app.add_option("--length", length, "of the shapes, as a multiple")->capture_default_str();
  app.add_option("--traces", folder, "also compare on the trace files of this folder")->check(CLI::ExistingDirectory);
  app.add_option("--policy", only, "only policies whose names contain this");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-12s %-24s %8s %8s %7s   each\n", "shape", "policy", "mean", "most", "holes");
  if (!folder.empty()) {
    for (const auto &file : std::filesystem::directory_iterator(folder)) {
      const std::filesystem::path &path = file.path();
      if (path.string().find(".trace") == std::string::npos) continue;
      compare(path.filename(), {ration::pool::replay::read_trace(path)}, only);
    }
  }
  for (const std::string &name : chosen) {
    std::vector<Trace> traces;
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) traces.push_back(find(name)->generate(seed, length));
    if (!traces.empty()) compare(name, traces, only);
  }
  return 0;
}

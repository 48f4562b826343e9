// Smallest arena over peak, policy by policy, over many seeds of every shape; and whether the real pool does what its
// policy says. One line for each policy and shape, so that any tool can sort them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "pool/replay/replay.h"
#include "shapes/arena.h"
#include "shapes/shapes.h"

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

// All policies on the traces of one shape; false where the pool and its policy part.
bool compare(const std::string &shape, const std::vector<Trace> &traces, const std::string &only) {
  bool agrees = true;
  Row pool;
  for (const Trace &trace : traces) {
    const std::uint64_t bytes = ration::pool::replay::find_minimum(trace);
    pool.ratios.push_back(ratio(bytes, trace));
    if (const std::size_t operation = first_difference(trace, bytes, policy_of_the_pool())) {
      agrees = false;
      std::printf("%s: the pool and its policy part at operation %zu\n", shape.c_str(), operation);
    }
  }
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
  return agrees;
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
  app.add_option("--shape", chosen, "these shapes alone")->check(CLI::IsMember(names));
  app.add_option("--first", first, "the first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "how many seeds of each shape; 0 = only the files")->capture_default_str();
  app.add_option("--length", length, "of the shapes, as a multiple")->capture_default_str();
  app.add_option("--traces", folder, "a folder of trace files to compare on as well")->check(CLI::ExistingDirectory);
  app.add_option("--policy", only, "only policies whose names contain this");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-12s %-24s %8s %8s %7s   each\n", "shape", "policy", "mean", "most", "holes");
  bool agrees = true;
  if (!folder.empty()) {
    for (const auto &file : std::filesystem::directory_iterator(folder)) {
      const std::filesystem::path &path = file.path();
      if (path.string().find(".trace") == std::string::npos) continue;
      agrees = compare(path.filename(), {ration::pool::replay::read_trace(path)}, only) && agrees;
    }
  }
  for (const std::string &name : chosen) {
    std::vector<Trace> traces;
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) traces.push_back(find(name)->generate(seed, length));
    if (!traces.empty()) agrees = compare(name, traces, only) && agrees;
  }
  std::printf(agrees ? "the pool agrees with its policy, block by block\n"
                     : "the pool does not agree with its policy\n");
  return agrees ? 0 : 1;
}

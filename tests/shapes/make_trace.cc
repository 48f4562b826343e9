// Writes the trace of one shape and seed to stdout, in the format that pool_replay reads.
#include <CLI/CLI.hpp>
#include <iostream>

#include "shapes/shapes.h"

namespace {

void write(std::ostream &out, const ration::pool::replay::Trace &trace) {
  for (const ration::pool::replay::Operation &operation : trace.operations) {
    out << (operation.is_free ? "f " : "a ") << trace.names[operation.id];
    if (!operation.is_free) out << ' ' << operation.bytes;
    out << '\n';
  }
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app("Writes an allocation trace to stdout");
  std::string name;
  std::uint64_t seed = 1;
  double length = 1;
  std::vector<std::string> names;
  for (const ration::shapes::Shape &shape : ration::shapes::all()) names.emplace_back(shape.name);
  app.add_option("--shape", name, "what program it looks like")->required()->check(CLI::IsMember(names));
  app.add_option("--seed", seed, "another seed, another trace")->capture_default_str();
  app.add_option("--length", length, "how long it goes on, as a multiple")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const ration::pool::replay::Trace trace = ration::shapes::find(name)->generate(seed, length);
  std::cout << "# ration-trace 1\n# name " << name << " seed " << seed << "\n# peak_bytes " << trace.peak_bytes
            << "\n# peak_live " << trace.peak_live << '\n';
  write(std::cout, trace);
  return std::cout.flush() ? 0 : 1;
}

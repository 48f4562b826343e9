// pool_replay: the smallest arena for a trace of allocations under Ration's pool, its placements and its speed.
// Layer: a program; pool, config (sizes), CLI11 and nlohmann_json. Exit: 0 fits, 1 does not fit, 2 wrong usage
// or trace.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/values/size.h"
#include "logs/replay/figures.h"
#include "pool/unit.h"
#include "tests/bench/pool_replay/replay.h"

namespace ration::pool::replay {
namespace {

constexpr int kDoesNotFit = 1;
constexpr int kWrongUsage = 2;
constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kOptionWidth = 24;  // of it, for the names of options

struct Arguments {
  std::string trace;
  std::uint64_t arena_bytes = 0;  // 0: the smallest possible
  unsigned threads = 1;
  std::string backing = "slab";
  std::string placements;
  bool find_min = false;  // the default without --arena; lets a command line be explicit
  bool json = false;
};

// Lines of at most `width` columns, of a text in ASCII.
std::string filled(const std::string &text, std::size_t width) {
  std::istringstream words(text);
  std::string lines;
  std::size_t column = 0;
  for (std::string word; words >> word; column += word.size()) {
    const bool fits = column + 1 + word.size() <= width;
    lines += lines.empty() ? "" : fits ? " " : "\n";
    column = fits && !lines.empty() ? column + 1 : 0;
    lines += word;
  }
  return lines;
}

// Throws CLI::ValidationError.
std::uint64_t arena_of(const std::string &text) {
  const auto bytes = config::parse_bytes(text);
  const std::string quoted = "`" + text + "` is not a size between 1 byte and 256 TiB";
  if (const std::string *wrong = std::get_if<std::string>(&bytes)) {
    throw CLI::ValidationError("--arena", quoted + ": " + *wrong);
  }
  const std::uint64_t arena_bytes = std::get<std::uint64_t>(bytes);
  if (arena_bytes == 0 || arena_bytes > kMaximumBytes) throw CLI::ValidationError("--arena", quoted);
  return arena_bytes;
}

void declare(CLI::App &app, Arguments &arguments) {
  app.option_defaults()->always_capture_default(false);
  app.add_option("--trace", arguments.trace, "The trace, lines `a ID BYTES` and `f ID`")->type_name("FILE")->required();
  const auto keep_arena = [&arguments](const std::string &text) { arguments.arena_bytes = arena_of(text); };
  CLI::Option *arena =
      app.add_option_function<std::string>("--arena", keep_arena, "Replay in an arena of this size, such as 8GiB")
          ->type_name("BYTES");
  app.add_flag("--find-min", arguments.find_min, "Replay in the smallest possible arena, found to 0.05 % (the default)")
      ->excludes(arena);
  app.add_option(
         "--backing", arguments.backing,
         "Memory of the arena: one slab, or (vmm) granules, pages of 2 MiB that are mapped where they are needed")
      ->type_name("slab|vmm")
      ->check([](const std::string &value) {
        return value == "slab" || value == "vmm" ? "" : "`" + value + "` is not a backing; use `slab` or `vmm`";
      });
  app.add_option(
         "--threads", arguments.threads,
         "Measure with N threads that each replay the whole trace with their own blocks on one locked pool. BYTES "
         "must then hold all N copies; without --arena it is 2 N times the smallest arena")
      ->type_name("N")
      ->check([](const std::string &value) {
        unsigned threads = 0;
        const bool fits = CLI::detail::lexical_cast(value, threads) && threads >= 1 && threads <= 256;
        return fits ? "" : value + ": it must be a number from 1 to 256";
      });
  app.add_option(
         "--placements", arguments.placements,
         "Write one line per operation to OUT: `a ID OFFSET BYTES` (offset in the arena, bytes as requested) or "
         "`f ID`. With vmm `a ID BYTES G0 G1 ...`: the pages of the "
         "block's bytes, `G:OFFSET` for a part of one. One thread only")
      ->type_name("OUT");
  app.add_flag("--json", arguments.json, "Print one JSON object, sizes in bytes, instead of a table");
  const std::string times =
      "Times are per call of the pool with its lock, without the clock's own cost; pair_ns_mean is the time of two "
      "operations of one thread without a clock between them, in the fastest of five passes. The exit status is 1 if "
      "the trace does not fit.";
  app.footer(filled(times, kHelpWidth) +
             "\n\n"
             "  pool_replay --trace train.trace --find-min\n"
             "  pool_replay --trace serve.trace --arena 17GiB --placements serve.txt");
  app.description(filled(app.get_description(), kHelpWidth));
  app.get_formatter()->column_width(kOptionWidth);
  for (CLI::Option *option : app.get_options()) {
    option->description(filled(option->get_description(), kHelpWidth - kOptionWidth));
  }
}

void print(const nlohmann::ordered_json &result, bool as_json) {
  if (as_json) {
    std::cout << result.dump() << '\n';
    return;
  }
  for (const auto &[key, value] : result.items()) {
    std::cout << std::left << std::setw(26) << key << (value.is_string() ? value.get<std::string>() : value.dump())
              << '\n';
  }
}

nlohmann::ordered_json json_of(const DriverCalls &calls) {
  return {{"create", calls.create}, {"release", calls.release}, {"map", calls.map},
          {"access", calls.access}, {"unmap", calls.unmap},     {"us", calls.us}};
}

// What the driver had to do, by the figures of granule_costs.h.
void describe_driver(const Driver &driver, nlohmann::ordered_json &result) {
  result["preallocation"] = json_of(driver.preallocation);
  result["driver"] = json_of(driver.requests);
  result["last_driver_operation"] = driver.last_operation;
  result["stitched_blocks"] = driver.stitched;
  result["revived_blocks"] = driver.revived;
}

int report_stop(const Arguments &arguments, nlohmann::ordered_json result, const Stop &stop) {
  result["fits"] = false;
  result["failed_operation"] = stop.operation;
  result["failed_bytes"] = stop.bytes;
  result["largest_free"] = stop.largest_free;
  if (arguments.json) print(result, true);
  std::cerr << "pool_replay: " << arguments.trace << " does not fit into " << arguments.arena_bytes
            << " bytes: operation " << stop.operation << " requests " << stop.bytes << ", the largest hole is "
            << stop.largest_free << '\n';
  return kDoesNotFit;
}

int run(Arguments arguments) {
  const Trace trace = read_trace(arguments.trace);
  nlohmann::ordered_json result = {{"trace", arguments.trace},       {"operations", trace.operations.size()},
                                   {"peak_bytes", trace.peak_bytes}, {"peak_live_blocks", trace.peak_live},
                                   {"backing", arguments.backing},   {"threads", arguments.threads}};
  const Backing backing = arguments.backing == "vmm" ? Backing::vmm : Backing::slab;
  // Where one copy does not fit, N do not either: report it before measuring.
  if (arguments.arena_bytes != 0) {
    if (const std::optional<Stop> stop = replay(trace, arguments.arena_bytes, backing)) {
      result["arena_bytes"] = arguments.arena_bytes;
      return report_stop(arguments, std::move(result), *stop);
    }
  }
  const std::uint64_t minimum = find_minimum(trace, backing);
  if (arguments.arena_bytes == 0) {
    arguments.arena_bytes = arguments.threads == 1 ? minimum : 2 * arguments.threads * minimum;
  }
  result["arena_bytes"] = arguments.arena_bytes;
  if (!arguments.placements.empty()) {
    std::ofstream out(arguments.placements);
    (void)replay(trace, arguments.arena_bytes, backing, &out);
    if (!out.flush()) throw TraceError(arguments.placements + ": cannot be written");
  }
  const Measurement measured = measure(trace, arguments.arena_bytes, arguments.threads, backing);
  if (measured.stop) return report_stop(arguments, std::move(result), *measured.stop);
  result["fits"] = true;
  if (backing == Backing::vmm && arguments.threads == 1) {
    Driver driver;
    (void)replay(trace, arguments.arena_bytes, backing, nullptr, &driver);
    describe_driver(driver, result);
  }
  result["min_arena_bytes"] = minimum;
  result["min_arena_ratio"] = static_cast<double>(minimum) / static_cast<double>(trace.peak_bytes);
  add_figures(measured, result);
  print(result, arguments.json);
  if (!std::cout.flush()) throw TraceError("cannot write to standard output");
  return 0;
}

int parse_and_run(int count, const char *const *words) {
  CLI::App app("Replays a trace of allocations through Ration's pool: no GPU, no driver, the placement code itself.",
               "pool_replay");
  Arguments arguments;
  app.set_version_flag("-V,--version", "pool_replay " RATION_VERSION, "Print the version");
  declare(app, arguments);
  try {
    app.parse(count, words);
    if (arguments.threads != 1 && !arguments.placements.empty()) {
      throw CLI::ValidationError("--placements", "several threads have no repeatable order; use --threads 1");
    }
  } catch (const CLI::Success &request) {  // --help and --version
    return app.exit(request);
  } catch (const CLI::RequiredError &) {
    throw TraceError("--trace FILE is required");
  } catch (const CLI::ParseError &error) {
    throw TraceError(error.what());
  }
  return run(std::move(arguments));
}

}  // namespace
}  // namespace ration::pool::replay

int main(int count, char **words) {
  using namespace ration::pool::replay;
  try {
    return parse_and_run(count, words);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "pool_replay: %s\n", error.what());
    return kWrongUsage;
  }
}

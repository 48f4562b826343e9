#include "cli/find/run_options.h"

#include "cli/find/repeated_run.h"
#include "cli/run/simulated_machine.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli {
namespace {

constexpr std::uint64_t kPartsOfAll = std::uint64_t{1} << 50;  // the precision of a share

// Reads the options that both verbs have. Returns what is wrong; empty if nothing is.
std::string read_both(const RunRequest &run, const std::optional<std::string> &timeout, FindOptions &options) {
  if (run.command.empty() || run.command.front().empty()) {
    return "no command; write it after the options: -- ./train";
  }
  if (std::string wrong = error_in_simulation(run.simulate); !wrong.empty()) {
    return wrong;
  }
  if (!timeout) {
    return "";
  }
  std::chrono::milliseconds read{0};
  const bool is_read = config::read_milliseconds(*timeout, read).empty() && read.count() > 0;
  options.timeout = read;
  return is_read ? ""
                 : "--timeout " + config::shown(*timeout) +
                       ": it must be a number of seconds above 0, or have a unit, ms s m h; write, for example, 30s";
}

std::string read_tolerance(const std::string &text, Tolerance &tolerance) {
  const auto amount = config::parse_amount(text, "64MiB or 0.5%");
  if (const std::string *wrong = std::get_if<std::string>(&amount)) {
    return "--tolerance " + config::shown(text) + ": " + *wrong;
  }
  const auto &read = std::get<config::Size>(amount);
  if (!read.is_share() && read.bytes_of(0) == 0) {
    return "--tolerance is too small; the smallest is 1 byte";
  }
  tolerance = read.is_share() ? Tolerance{1, static_cast<double>(read.bytes_of(kPartsOfAll)) / kPartsOfAll}
                              : Tolerance{read.bytes_of(0), 0};
  return "";
}

}  // namespace

std::variant<FindOptions, std::string> read_find_options(const FindMinRequest &request) {
  FindOptions options;
  std::string wrong = read_both(request.run, request.timeout, options);
  if (wrong.empty()) {
    wrong = taken_flag(request.run, {"limit"});
  }
  if (wrong.empty() && request.tolerance) {
    wrong = read_tolerance(*request.tolerance, options.tolerance);
  }
  if (!wrong.empty()) {
    return wrong;
  }
  return options;
}

std::variant<FindOptions, std::string> read_find_options(const FindFaultsRequest &request) {
  FindOptions options;
  std::string wrong = read_both(request.run, request.timeout, options);
  if (wrong.empty()) {
    wrong = taken_flag(request.run, {"log", "fail"});
  }
  if (!wrong.empty()) {
    return wrong;
  }
  return options;
}

}  // namespace ration::cli

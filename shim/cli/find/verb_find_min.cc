// `ration find-min`: runs a command to find the smallest limit with which it succeeds. Layer: cli.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "cli/find/limit_search.h"
#include "cli/find/repeated_run.h"
#include "cli/find/run_options.h"
#include "cli/run/run_preparation.h"
#include "cli/run/run_summary.h"
#include "cli/run/temporary_folder.h"
#include "config/values/size.h"
#include "logs/output/json_or_null.h"

namespace ration::cli {
namespace {

using std::chrono::milliseconds;

// Figures that the processes of one run left.
struct Figures {
  std::uint64_t peak = 0;     // live blocks of the process and device where they were highest
  bool refused = false;       // any request was refused
  std::uint64_t ceiling = 0;  // the largest limit that any device had
};

struct LimitedRun {
  std::uint64_t limit;  // 0: none
  RunEnd end;
  Figures figures;
};

bool has_log(const Flags &flags) {
  return std::any_of(flags.begin(), flags.end(), [](const auto &each) { return each.first->key == "log"; });
}

// The limits that hold in every run, as they were written; empty: none.
std::string limits_of(const config::Settings &settings) {
  std::string text;
  for (const config::Origin &origin : settings.origins) {
    const bool is_limit = config::option_of_key(origin.key)->effect == config::Effect::kLimits;
    if (is_limit && origin.key != "group_tree" && origin.instead.empty()) {
      text += (text.empty() ? "" : ", ") + origin.as_given();
    }
  }
  return text;
}

class MinimumFinder {
 public:
  MinimumFinder(const FindMinRequest &request, const FindOptions &options)
      : request_(request.run),
        options_(options),
        runs_(request.run),
        nowhere_(open("/dev/null", O_WRONLY | O_CLOEXEC)),
        has_log_(has_log(request.run.flags)),
        may_overwrite_(request.run.force) {
    runs_.environment().unset("RATION_LIMIT");
  }
  ~MinimumFinder() { close(nowhere_); }
  MinimumFinder(const MinimumFinder &) = delete;
  MinimumFinder &operator=(const MinimumFinder &) = delete;

  // 0 if a limit was found; otherwise the exit status (the reason was logged). Throws Refusal before the first run.
  int find();
  bool is_confirmed() const { return all_.back().end.succeeded(); }
  bool is_refused() const { return all_.back().figures.refused; }
  std::uint64_t minimum() const { return all_.back().limit; }
  const std::vector<LimitedRun> &all() const { return all_; }

 private:
  // False if a signal or an error of ours ended the run, which is then logged in a line that begins with `before`.
  bool run(std::uint64_t limit, const char *before = "");
  int refuse_first() const;
  Figures figures_of(const std::string &folder) const;

  const RunRequest &request_;
  const FindOptions options_;
  RepeatedRun runs_;
  const int nowhere_;
  const bool has_log_;
  bool may_overwrite_;
  std::string without_;  // how the first run is named: it has no limit of ours
  milliseconds timeout_{0};
  std::vector<LimitedRun> all_;
};

Figures MinimumFinder::figures_of(const std::string &folder) const {
  Figures figures;
  for (const events::Summary &process : read_summaries(folder)) {
    for (const events::Summary::Device &device : process.devices) {
      figures.peak = std::max(figures.peak, device.peak_bytes);
      figures.refused = figures.refused || std::any_of(std::begin(device.denied), std::end(device.denied),
                                                       [](std::uint64_t count) { return count != 0; });
      figures.ceiling = std::max(figures.ceiling, device.limit_asked ? device.limit : device.total);
    }
  }
  return figures;
}

bool MinimumFinder::run(std::uint64_t limit, const char *before) {
  TemporaryFolder pages;
  runs_.environment().set("RATION_SUMMARY", pages.path());
  std::vector<std::string> options;
  if (limit != 0) {
    options.push_back("--limit=" + std::to_string(limit));
  }
  const bool is_first = all_.empty();
  if (may_overwrite_) {
    options.push_back("--force");
  }
  may_overwrite_ = has_log_;  // any log there is now one of this search
  const RunEnd end = runs_.run(options, is_first ? STDERR_FILENO : nowhere_, is_first ? STDERR_FILENO : nowhere_,
                               is_first ? options_.timeout.value_or(milliseconds{0}) : timeout_);
  all_.push_back({limit, end, figures_of(pages.path())});
  if (end.our_error != 0) {
    log_line("find-min: cannot start a process: " + std::string(std::strerror(end.our_error)));
  } else if (end.interrupted_by == 0) {
    const std::string what = before + (limit == 0 ? without_ : "limit " + config::show_exact_bytes(limit));
    std::string line = "find-min: " + what + ": " + (end.succeeded() ? "succeeds" : "fails, " + end_text(end));
    const Figures &figures = all_.back().figures;
    log_line(line += figures.peak != 0 ? ", peak " + config::show_exact_bytes(figures.peak)
                     : figures.refused ? ", all device memory was refused"
                                       : ", no device memory was requested");
  }
  return end.our_error == 0 && end.interrupted_by == 0;
}

int MinimumFinder::refuse_first() const {
  const RunEnd &end = all_.front().end;
  if (end.status >= kOurError && end.status <= kNotFound && !end.timed_out) {
    return end.status;  // `ration run` has reported the reason
  }
  log_line("find-min: the command fails with " + without_ + ": " + end_text(end));
  return kOurError;
}

int MinimumFinder::find() {
  const std::string others = limits_of(refuse_wrong_line(request_, runs_.environment()));
  without_ = others.empty() ? "no limit" : "no limit but " + others;
  const auto stopped = [this] {
    return all_.back().end.our_error != 0 ? kOurError : kKilled + all_.back().end.interrupted_by;
  };
  if (!run(0)) {
    return stopped();
  }
  const LimitedRun first = all_.front();
  if (!first.end.succeeded()) {
    return refuse_first();
  }
  timeout_ = timeout_after(options_.timeout, first.end.took);
  LimitSearch search(first.figures.peak, first.figures.ceiling, options_.tolerance);
  while (const std::optional<std::uint64_t> limit = search.next()) {
    if (!run(*limit)) {
      return stopped();
    }
    search.record(all_.back().end.succeeded());
  }
  return run(search.sufficient(), "once more, ") ? 0 : stopped();
}

std::string json_of(const MinimumFinder &finder, const FindMinRequest &request) {
  using Json = nlohmann::ordered_json;
  Json runs = Json::array();
  for (const LimitedRun &each : finder.all()) {
    runs.push_back({{"limit", logs::or_null(each.limit != 0, each.limit)},
                    {"succeeded", each.end.succeeded()},
                    {"status", each.end.status},
                    {"timed_out", each.end.timed_out},
                    {"duration_ns", std::chrono::nanoseconds(each.end.took).count()},
                    {"peak_bytes", each.figures.peak}});
  }
  const Json document = {{"schema", "ration.find_min/1"},      {"command", in_one_line(request.run.command)},
                         {"min_limit", finder.minimum()},      {"peak_bytes", finder.all().front().figures.peak},
                         {"confirmed", finder.is_confirmed()}, {"runs", std::move(runs)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int run_verb(const FindMinRequest &request) try {
  const auto options = read_find_options(request);
  if (const std::string *wrong = std::get_if<std::string>(&options)) {
    return usage_error("find-min: " + *wrong, kUsageError);
  }
  MinimumFinder finder(request, std::get<FindOptions>(options));
  if (const int status = finder.find(); status != 0) {
    return status;
  }
  if (!finder.is_confirmed()) {
    log_line(
        "find-min: the command failed now with a limit that was enough before: what it needs differs from run to run");
  } else if (finder.is_refused()) {
    log_line(
        "find-min: under this limit requests were refused, yet the command exits with 0: it can do without that "
        "memory, or "
        "it is a shell, whose exit status hides that one of its programs failed");
  }
  if (request.json) {
    std::cout << json_of(finder, request) << '\n';
  } else {
    std::cout << "peak=" << finder.all().front().figures.peak << '\n' << "min_limit=" << finder.minimum() << '\n';
  }
  return !flush_stdout() ? kOurError : finder.is_confirmed() ? 0 : kDoesNotHold;
} catch (const Refusal &refusal) {
  if (!refusal.line.empty()) {
    log_error("find-min: " + refusal.line);
  }
  return refusal.exit_status;
}

}  // namespace ration::cli

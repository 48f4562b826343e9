// `ration replay`: tells, without running anything, whether what a log records would fit under a limit, or finds the
// smallest limit.
// Layer: cli.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/base/devices_of_logs.h"
#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/program_name.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/history/read_history.h"
#include "logs/reader/named_logs.h"
#include "logs/replay/device_log.h"
#include "logs/replay/figures.h"
#include "logs/report/caveats.h"
#include "logs/report/report.h"

namespace ration::cli {
namespace {

using pool::replay::Backing;
using pool::replay::DeviceStop;
using Json = nlohmann::ordered_json;

enum class ReplayMode { pool, direct, async };

struct DeviceAnswer {
  std::size_t ordinal;
  const logs::DeviceLog::Device *device;
  Backing backing;
  std::uint64_t limit;                   // the replayed limit; for a search, the smallest one
  std::uint64_t peak;                    // used, also by records that are missing if the log's end tells it
  std::uint64_t requested_peak;          // the same, as the replay requests it
  std::optional<DeviceStop> stop;        // where it does not fit, if it does not
  bool is_below_peak;                    // it does not fit either: records that are missing had this peak
  std::optional<std::uint64_t> minimum;  // of a search; nullopt: no limit suffices

  bool fits() const { return !stop && !is_below_peak; }

  std::string api() const {
    const auto &steps = device->trace.steps;
    const auto at = std::find_if(steps.begin(), steps.end(),
                                 [this](const pool::replay::DeviceStep &step) { return step.record == stop->record; });
    return device->apis[static_cast<std::size_t>(at - steps.begin())];
  }
};

const char *name_of(Backing backing) {
  return backing == Backing::slab ? "slab" : "vmm";
}

class LogReplay {
 public:
  LogReplay(const ReplayRequest &request, std::string path, ReplayMode mode, const config::LimitMap &limit)
      : request_(request),
        path_(std::move(path)),
        mode_(mode),
        limit_(limit),
        log_(mode == ReplayMode::async ? logs::DeviceLog::Counts::blocks : logs::DeviceLog::Counts::reserved) {}

  // False if the file is not a whole log, which was then reported.
  bool read();
  void answer();
  // Why the answer is not certain, a sentence each. That the log has no end is not among them: reading it says so.
  std::vector<std::string> flaws() const;
  bool fits() const;
  bool is_whole() const { return log_.is_whole(); }
  bool is_exact() const;
  // True if more may really be needed.
  bool is_least() const {
    return !is_whole() || refusals() != 0 ||
           std::any_of(answers_.begin(), answers_.end(), [this](const DeviceAnswer &each) {
             return is_in_slabs(each) || each.device->is_stream_ordered;
           });
  }
  std::uint64_t minimum() const;
  std::vector<std::string> text() const;
  Json json() const;
  const std::string &path() const { return path_; }
  const logs::DeviceLog &log() const { return log_; }

 private:
  DeviceAnswer answer_for(std::size_t ordinal) const;
  // When one pool gives granules to another is not known.
  bool has_several_pools(const DeviceAnswer &answer) const {
    return mode_ == ReplayMode::pool && answer.backing == Backing::vmm && answer.device->trace.pools > 1;
  }
  bool is_most(const DeviceAnswer &answer) const {
    return answer.device->is_stream_ordered || has_several_pools(answer);
  }
  bool is_in_slabs(const DeviceAnswer &answer) const {
    return mode_ == ReplayMode::pool && answer.backing == Backing::slab;
  }
  std::uint64_t refusals() const;
  std::string unknown_part() const;
  const DeviceAnswer *worst() const;

  const ReplayRequest &request_;
  const std::string path_;
  const ReplayMode mode_;
  const config::LimitMap &limit_;  // empty: the one that the log was written under
  logs::DeviceLog log_;
  bool was_cut_off_ = false;
  std::vector<DeviceAnswer> answers_;
};

bool LogReplay::read() {
  const logs::ReadTo read =
      logs::read_records("replay", path_, [this](const logs::Record &record) { log_.add(record); });
  was_cut_off_ = read == logs::ReadTo::cut;
  return logs::has_records(read);
}

DeviceAnswer LogReplay::answer_for(std::size_t ordinal) const {
  const logs::DeviceLog::Device &device = log_.devices()[ordinal];
  const std::uint64_t end_peak = is_whole() ? 0 : device.end_peak;
  DeviceAnswer answer{ordinal,
                      &device,
                      Backing::vmm,
                      0,
                      std::max(device.peak_bytes, end_peak),
                      std::max(device.trace.peak_bytes, end_peak),
                      {},
                      false,
                      {}};
  const bool in_pool = mode_ == ReplayMode::pool;
  if (!request_.find_min) {
    const std::uint64_t logged = device.limit != 0 ? device.limit : device.total;
    answer.limit = config::smallest_limit(limit_, log_.identity(ordinal)).value_or(logged);
  }
  answer.backing = request_.backing.empty()     ? device.backing_under(answer.limit)
                   : request_.backing == "slab" ? Backing::slab
                                                : Backing::vmm;
  if (!request_.find_min) {
    answer.stop =
        in_pool ? replay_device(device.trace, answer.limit, answer.backing) : replay_direct(device.trace, answer.limit);
    answer.is_below_peak = answer.limit < end_peak;
    return answer;
  }
  const bool in_pages = in_pool && answer.backing == Backing::vmm;
  const std::uint64_t step = in_pages ? 2 * config::kMiB : 1;
  const std::uint64_t least = std::max((end_peak + step - 1) / step * step, config::kMiB);
  answer.minimum = in_pool ? find_device_minimum(device.trace, answer.backing) : find_direct_minimum(device.trace);
  answer.minimum = answer.minimum ? std::optional(std::max(*answer.minimum, least)) : std::nullopt;
  answer.limit = answer.minimum.value_or(0);
  return answer;
}

void LogReplay::answer() {
  for (std::size_t i = 0; i < log_.devices().size(); ++i) {
    const logs::DeviceLog::Device &device = log_.devices()[i];
    if (!device.trace.steps.empty() || (!is_whole() && device.end_peak != 0)) {
      answers_.push_back(answer_for(i));
    }
  }
}

bool LogReplay::is_exact() const {
  return is_whole() && refusals() == 0 &&
         std::none_of(answers_.begin(), answers_.end(),
                      [this](const DeviceAnswer &each) { return is_most(each) || is_in_slabs(each); });
}

// The refusals on all devices, including those on which no request was served.
std::uint64_t LogReplay::refusals() const {
  std::uint64_t count = 0;
  for (const logs::DeviceLog::Device &each : log_.devices()) {
    count += each.refusals;
  }
  return count;
}

std::vector<std::string> LogReplay::flaws() const {
  std::vector<std::string> flaws;
  if (log_.dropped() != 0) {
    flaws.push_back("not exact: " + counted(log_.dropped(), "record is", "records are") + " missing");
  }
  if (request_.find_min && !is_whole()) {
    flaws.emplace_back("min_limit is a lower bound: the records that are missing may need more");
  }
  for (std::size_t i = 0; i < log_.devices().size(); ++i) {
    if (const std::uint64_t refused = log_.devices()[i].refusals; refused != 0) {
      flaws.push_back("device " + std::to_string(i) + ": " + counted(refused, "request was", "requests were") +
                      " refused, so the log has only what the program did without; log a run without a limit");
    }
  }
  for (const DeviceAnswer &each : answers_) {
    const std::string device = "device " + std::to_string(each.ordinal) + ": ";
    if (each.device->is_stream_ordered) {
      const std::string held = config::show_exact_bytes(each.device->peak_reserved);
      flaws.push_back(
          device +
          (mode_ == ReplayMode::async
               ? "stream-ordered memory counts as its blocks; the driver's pools need more for them, and held "
                 "up to " +
                     held
               : "stream-ordered memory counts as what the driver's pools held for it in this run, up to " + held +
                     "; they may get by with less, down to its blocks, and need up to a whole step (32MiB) more"));
    }
    if (has_several_pools(each)) {
      flaws.push_back(device + "the pools of several contexts share the limit: " +
                      (request_.find_min
                           ? "min_limit is rounded up by " + config::show_bytes(pool::replay::kSpareOfPools)
                           : "up to " + config::show_bytes(pool::replay::kSpareOfPools) + " more may be needed"));
    }
    if (is_in_slabs(each)) {
      const bool by_limit = request_.backing.empty() && each.device->backing != "slab";
      flaws.push_back(
          device + (by_limit ? "the limit is not in whole pages of 2MiB, so slabs serve it" : "slabs") +
          ": where the driver puts them is not known, so the answer may be too low; `ration find-min` runs the "
          "program instead");
    }
    if (is_in_slabs(each) && each.device->trace.peak_other_bytes != 0) {
      flaws.push_back(device + "up to " + config::show_exact_bytes(each.device->trace.peak_other_bytes) +
                      " are no blocks of a pool; a preallocated slab leaves nothing to them (RATION_PREALLOCATE)");
    }
  }
  return flaws;
}

// What is not known, in words for the line of the answer; empty if nothing is.
std::string LogReplay::unknown_part() const {
  if (was_cut_off_) {
    return "it was cut off";
  }
  if (log_.dropped() != 0) {
    return "it lacks " + counted(log_.dropped(), "record", "records");
  }
  if (!log_.has_ended()) {
    return "it has no end record";
  }
  return refusals() == 0 ? "" : counted(refusals(), "request in it was", "requests in it were") + " refused";
}

bool LogReplay::fits() const {
  return std::all_of(answers_.begin(), answers_.end(), [this](const DeviceAnswer &each) {
    return request_.find_min ? each.minimum.has_value() : each.fits();
  });
}

const DeviceAnswer *LogReplay::worst() const {
  const auto key = [](const DeviceAnswer &each) {
    return std::make_pair(!each.fits(), each.minimum.value_or(each.device->trace.peak_bytes));
  };
  const auto most = std::max_element(answers_.begin(), answers_.end(),
                                     [key](const auto &a, const auto &b) { return key(a) < key(b); });
  return most == answers_.end() ? nullptr : &*most;
}

std::uint64_t LogReplay::minimum() const {
  const DeviceAnswer *most = worst();
  return most == nullptr ? config::kMiB : most->minimum.value_or(0);
}

std::vector<std::string> LogReplay::text() const {
  std::vector<std::string> lines;
  for (const DeviceAnswer &each : answers_) {
    std::string line = "device " + std::to_string(each.ordinal) + ": ";
    if (request_.find_min) {
      const char *const bound = !is_whole()                                           ? "at least "
                                : is_in_slabs(each) || each.device->is_stream_ordered ? "about "
                                : is_most(each)                                       ? "at most "
                                                                                      : "";
      line += each.minimum ? "needs " + (bound + config::show_exact_bytes(*each.minimum)) : "fits into no limit";
    } else if (each.fits()) {
      const std::string unknown = unknown_part();
      line += (is_most(each) || is_in_slabs(each) ? "probably fits into " : "fits into ") +
              config::show_exact_bytes(each.limit) + logs::as_far_as_it_goes(unknown.empty()) +
              (unknown.empty() ? "" : ": " + unknown);
    } else {
      line += "does not fit into " + config::show_exact_bytes(each.limit);
      line += each.stop ? ": record " + std::to_string(each.stop->record) + ", " + each.api() + " of " +
                              config::show_exact_bytes(each.stop->bytes) + " while " +
                              config::show_exact_bytes(each.stop->used) + " are in use"
                        : ": the records that are missing used more";
    }
    lines.push_back(line + "; peak used " + (log_.has_ended() ? "" : "at least ") +
                    config::show_exact_bytes(each.peak));
  }
  if (answers_.empty()) {
    lines.emplace_back(refusals() == 0
                           ? logs::nothing_requested(log_.has_ended())
                           : "no request for device memory was served" + logs::as_far_as_it_goes(log_.has_ended()));
  }
  return lines;
}

// `is_most`: less than a limit that was found may suffice.
Json summary_of(const DeviceAnswer &each, bool found, bool is_most) {
  const auto &trace = each.device->trace;
  Json result = {{"dev", each.ordinal},
                 {"operations", trace.steps.size()},
                 {"peak_bytes", each.peak},
                 {"requested_peak_bytes", each.requested_peak},
                 {"unpooled_peak_bytes", trace.peak_other_bytes},
                 {"peak_live_blocks", each.device->peak_live_blocks},
                 {"pools", trace.pools},
                 {"backing", name_of(each.backing)},
                 {"fits", each.fits() && (!found || each.minimum)}};
  if (!found) {
    result["limit"] = each.limit;
  }
  if (each.stop) {
    result["refused_seq"] = each.stop->record;
    result["api"] = each.api();
    result["refused_bytes"] = each.stop->bytes;
    result["used_bytes"] = each.stop->used;
  }
  if (each.minimum) {
    result["min_limit"] = *each.minimum;
    result["min_arena_bytes"] = *each.minimum;
    result["min_arena_ratio"] = static_cast<double>(*each.minimum) / static_cast<double>(each.requested_peak);
    result["min_limit_is_most"] = is_most;
  }
  return result;
}

// Adds the speed of the pool with the highest peak, for the same amount of memory.
void add_speed(const DeviceAnswer &each, Json &result) {
  const auto &pools = each.device->pools;
  const auto most = std::max_element(pools.begin(), pools.end(),
                                     [](const auto &a, const auto &b) { return a.peak_bytes < b.peak_bytes; });
  if (most == pools.end()) {
    return;
  }
  pool::replay::TraceBuilder requests = most->requests;
  const auto measured = pool::replay::measure(requests.take(), each.limit, 1, each.backing);
  if (!measured.stop) {
    result["context"] = most->context;
    add_figures(measured, result);
  }
}

Json LogReplay::json() const {
  std::vector<std::string> reasons = flaws();
  if (std::string end = logs::caveat_of_end(log_.has_ended(), was_cut_off_); !end.empty()) {
    reasons.insert(reasons.begin(), std::move(end));
  }
  Json document = {{"schema", "ration.replay/1"},
                   {"log", path_},
                   {"program", program_name(log_.program())},
                   {"exe", log_.program()},
                   {"pid", log_.pid()},
                   {"mode", request_.mode},
                   {"exact", is_exact()},
                   {"reasons", std::move(reasons)},
                   {"ended", log_.has_ended()},
                   {"threads", 1},
                   {"fits", fits()}};
  if (const DeviceAnswer *most = worst()) {
    document.update(summary_of(*most, request_.find_min, is_most(*most)));
    if (request_.find_min && most->minimum && mode_ == ReplayMode::pool) {
      add_speed(*most, document);
    }
  } else if (request_.find_min) {
    document["min_limit"] = minimum();
    document["min_arena_bytes"] = minimum();
  }
  if (request_.find_min) {
    document["min_limit_is_least"] = is_least();
  }
  Json devices = Json::array();
  for (const DeviceAnswer &each : answers_) {
    devices.push_back(summary_of(each, request_.find_min, is_most(each)));
  }
  document["devices"] = std::move(devices);
  return document;
}

std::optional<ReplayMode> mode_named(const std::string &name) {
  return name == "pool"     ? std::optional(ReplayMode::pool)
         : name == "direct" ? std::optional(ReplayMode::direct)
         : name == "async"  ? std::optional(ReplayMode::async)
                            : std::nullopt;
}

using Replays = std::vector<std::unique_ptr<LogReplay>>;

// The largest limit that any process needs, and the sum of what all need.
std::pair<std::uint64_t, std::uint64_t> minimum_and_sum(const Replays &replays) {
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  for (const auto &each : replays) {
    most = std::max(most, each->minimum());
    sum += each->minimum();
  }
  return {most, sum};
}

std::vector<std::string> text_of_all(const Replays &replays, bool found) {
  std::vector<std::string> lines;
  for (const auto &each : replays) {
    for (const std::string &line : each->text()) {
      lines.push_back((replays.size() > 1 ? config::printable(each->path()) + ": " : "") + line);
    }
  }
  if (found) {
    const auto [most, sum] = minimum_and_sum(replays);
    if (replays.size() > 1) {
      lines.push_back("all " + std::to_string(replays.size()) + " together need " + config::show_exact_bytes(sum));
    }
    lines.push_back("min_limit=" + std::to_string(most));
  }
  return lines;
}

Json json_of_all(const Replays &replays, bool find_min, bool fits) {
  const bool exact = std::all_of(replays.begin(), replays.end(), [](const auto &each) { return each->is_exact(); });
  Json document = {{"schema", "ration.replay/1"}, {"exact", exact}, {"fits", fits}};
  if (find_min && fits) {
    const auto [most, sum] = minimum_and_sum(replays);
    document["min_limit"] = most;
    document["min_limit_is_least"] =
        std::any_of(replays.begin(), replays.end(), [](const auto &each) { return each->is_least(); });
    document["min_arena_bytes"] = most;
    document["min_limit_sum"] = sum;
  }
  document["logs"] = Json::array();
  for (const auto &each : replays) {
    document["logs"].push_back(each->json());
  }
  return document;
}

}  // namespace

int run_verb(const ReplayRequest &request) {
  const std::optional<ReplayMode> mode = mode_named(request.mode);
  if (!mode) {
    return usage_error("replay: --mode " + config::shown(request.mode) + ": " +
                           config::error_in_choice(request.mode, "pool direct async"),
                       kUsageError);
  }
  if (!request.backing.empty() && request.backing != "slab" && request.backing != "vmm") {
    return usage_error("replay: --backing " + config::shown(request.backing) + ": " +
                           config::error_in_choice(request.backing, "slab vmm"),
                       kUsageError);
  }
  config::LimitMap limit;
  if (const std::string wrong = request.limit ? config::parse_limit(*request.limit, limit) : ""; !wrong.empty()) {
    return usage_error("replay: --limit " + config::shown(*request.limit) + ": " + wrong, kUsageError);
  }
  DevicesOfLogs devices;
  std::vector<std::unique_ptr<LogReplay>> replays;
  for (const std::string &path : logs::each_log_once("replay", request.logs)) {
    LogReplay &replay = *replays.emplace_back(std::make_unique<LogReplay>(request, path, *mode, limit));
    if (!replay.read()) {
      return kUnreadable;
    }
    devices.add(replay.log());
    replay.answer();
    for (const std::string &flaw : replay.flaws()) {
      log_line("replay: " + config::printable(path) + ": " + flaw);
    }
  }
  if (const std::string wrong = devices.error_in(limit); !wrong.empty()) {
    return usage_error("replay: --limit: " + wrong, kUsageError);
  }
  const bool fits = std::all_of(replays.begin(), replays.end(), [](const auto &each) { return each->fits(); });
  if (*mode == ReplayMode::async && (request.find_min || fits)) {
    log_line(
        "replay: --mode async: where the driver's own pool places blocks is not known, so no replay can answer; it "
        "needs at least what --mode direct does");
    return kUnreadable;
  }
  if (request.json) {
    const Json document = replays.size() == 1 ? replays.front()->json() : json_of_all(replays, request.find_min, fits);
    std::cout << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    for (const std::string &line : fitting(text_of_all(replays, request.find_min && fits), output_width())) {
      std::cout << line << '\n';
    }
  }
  return !flush_stdout() ? kOurError : fits ? 0 : kDoesNotHold;
}

}  // namespace ration::cli

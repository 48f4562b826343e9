#include "cli/find/fault_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/base/text_table.h"
#include "cli/find/repeated_run.h"
#include "config/values/size.h"

namespace ration::cli {
namespace {

struct SurvivalName {
  Survival survival;
  const char *in_table, *in_json, *one, *many;
};
constexpr std::array<SurvivalName, 5> kNames = {{{Survival::kOk, "ok", "ok", "ok", "ok"},
                                                 {Survival::kDiffers, "differs", "differs", "differs", "differ"},
                                                 {Survival::kError, "error", "error", "error", "errors"},
                                                 {Survival::kCrash, "CRASH", "crash", "crash", "crashes"},
                                                 {Survival::kHang, "HANG", "hang", "hang", "hangs"}}};

const SurvivalName &name_of(Survival survival) {
  return kNames[static_cast<std::size_t>(survival)];
}

std::string explanation(const FaultRun &run) {
  return run.survival == Survival::kDiffers ? "exit status 0, another output" : end_text(run.end);
}

std::string counts(const FaultSearch &search) {
  if (search.runs.empty() && !search.is_cut) {
    return "no device memory was requested, so nothing could be refused";
  }
  std::string line = counted(search.runs.size(), "allocation", "allocations") + " refused, each in a run of its own";
  for (const SurvivalName &each : kNames) {
    const auto is_it = [&](const FaultRun &run) { return run.survival == each.survival; };
    const auto count = static_cast<std::uint64_t>(std::count_if(search.runs.begin(), search.runs.end(), is_it));
    if (count != 0) {
      line += each.survival == kNames.front().survival || line.find(':') == std::string::npos ? ": " : ", ";
      line += counted(count, each.one, each.many);
    }
  }
  return line += search.is_cut ? "; stopped there (--first), so later allocations are not known" : "";
}

}  // namespace

const FaultRun *FaultSearch::worst() const {
  for (const Survival survival : {Survival::kCrash, Survival::kHang}) {
    const auto first =
        std::find_if(runs.begin(), runs.end(), [&](const FaultRun &run) { return run.survival == survival; });
    if (first != runs.end()) {
      return &*first;
    }
  }
  return nullptr;
}

Survival survival_of(const RunEnd &end, bool prints_the_same) {
  if (end.timed_out) {
    return Survival::kHang;
  }
  if (end.status == 0) {
    return prints_the_same ? Survival::kOk : Survival::kDiffers;
  }
  return end.signal() != 0 ? Survival::kCrash : Survival::kError;
}

std::vector<std::string> fault_lines(const FaultSearch &search, std::size_t width) {
  std::vector<std::vector<std::string>> rows;
  for (const FaultRun &run : search.runs) {
    rows.push_back({std::to_string(run.nth), run.call.api, config::show_bytes(run.call.bytes),
                    name_of(run.survival).in_table, explanation(run)});
  }
  std::vector<std::string> lines;
  if (!rows.empty()) {
    lines = table_lines({{"NTH"},
                         {"REFUSED CALL", Align::kLeft, Fit::kShrinks},
                         {"SIZE"},
                         {"OUTCOME", Align::kLeft},
                         {"HOW", Align::kLeft, Fit::kShrinks}},
                        std::move(rows), width);
  }
  lines.push_back(counts(search));
  return fitting(lines, width);
}

std::string fault_json(const FaultSearch &search, const std::vector<std::string> &command) {
  using Json = nlohmann::ordered_json;
  Json runs = Json::array();
  std::array<std::uint64_t, kNames.size()> counts{};
  for (const FaultRun &run : search.runs) {
    ++counts[static_cast<std::size_t>(run.survival)];
    runs.push_back({{"nth", run.nth},
                    {"api", run.call.api},
                    {"refused_bytes", run.call.bytes},
                    {"dev", run.call.device},
                    {"outcome", name_of(run.survival).in_json},
                    {"status", run.end.status},
                    {"signal", run.end.signal()},
                    {"duration_ns", std::chrono::nanoseconds(run.end.took).count()}});
  }
  Json document = {{"schema", "ration.find_faults/1"},
                   {"command", in_one_line(command)},
                   {"survived", search.is_survived()},
                   {"cut", search.is_cut},
                   {"compared", search.compares}};
  for (const SurvivalName &each : kNames) {
    document[each.in_json] = counts[static_cast<std::size_t>(each.survival)];
  }
  document["runs"] = std::move(runs);
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ration::cli

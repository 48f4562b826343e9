// `ration report`: who held the memory of a run, in the terminal, as JSON or as a page. Layer: cli.
#include <algorithm>
#include <iostream>
#include <utility>
#include <variant>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "logs/history/read_history.h"
#include "logs/page/page_file.h"
#include "logs/page/page_json.h"
#include "logs/reader/named_logs.h"
#include "logs/report/report.h"

namespace ration::cli {
namespace {

constexpr std::size_t kRows = 10;
constexpr std::size_t kSamples = 48;  // of the memory map, for all logs together
constexpr std::size_t kLeastSamples = 3;
constexpr std::size_t kMostSamples = 24;

int write_report_page(const std::vector<std::string> &paths, const std::string &file) {
  const std::size_t samples = std::clamp(kSamples / paths.size(), kLeastSamples, kMostSamples);
  logs::Names names;
  std::vector<logs::PageLog> logs;
  for (const std::string &path : paths) {
    const int status = logs::read_page_log(path, samples, names, logs.emplace_back(names));
    if (logs.back().is_empty && paths.size() > 1) {
      logs.pop_back();
    } else if (status != 0) {
      return status;
    }
  }
  if (logs.empty()) {
    return kUnreadable;
  }
  return logs::write_page("report", file, logs::PageOf::report, logs::page_json(logs, names));
}

}  // namespace

int run_verb(const ReportRequest &request) {
  const auto grouping = logs::read_grouping(request.by);
  if (const auto *wrong = std::get_if<std::string>(&grouping)) {
    return usage_error("report: --by " + *wrong, kUsageError);
  }
  if (const std::string problem = request.page ? logs::problem_of_page(*request.page) : ""; !problem.empty()) {
    return usage_error("report: " + problem, kUsageError);
  }
  const std::vector<std::string> paths = logs::each_log_once("report", request.logs);
  if (request.page) {
    return write_report_page(paths, *request.page);
  }
  std::vector<logs::Report> reports;
  for (const std::string &log : paths) {
    reports.push_back({log, logs::History(std::get<logs::History::By>(grouping))});
    const logs::ReadTo read = logs::read_history("report", log, reports.back().history);
    if (read == logs::ReadTo::empty && paths.size() > 1) {
      reports.pop_back();
    } else if (!logs::has_records(read)) {
      return kUnreadable;
    }
  }
  if (reports.empty()) {
    return kUnreadable;
  }
  if (request.json) {
    std::cout << (request.leaks ? logs::leaks_json(reports) : logs::report_json(reports)) << '\n';
    return flush_stdout() ? 0 : kOurError;
  }
  const char *separator = "";
  for (const logs::Report &report : reports) {
    std::cout << std::exchange(separator, "\n");
    for (const std::string &line :
         request.leaks ? logs::leaks_text(report, output_width()) : logs::report_text(report, kRows, output_width())) {
      std::cout << line << '\n';
    }
  }
  return flush_stdout() ? 0 : kOurError;
}

}  // namespace ration::cli

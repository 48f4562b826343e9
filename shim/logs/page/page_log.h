// The parts of one log that a page shows. Layer: logs. Threads: one.
//
// The log is read once, for its sums. Then the events for the map are read back from a temporary file. By then the
// peaks are known, so the blocks that were held at each peak can be collected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/history/history.h"
#include "logs/page/caller_stack.h"
#include "logs/page/pool_map.h"
#include "logs/page/series.h"
#include "logs/page/sites.h"

namespace ration::logs {

struct PageRefusal {
  std::uint64_t seq = 0, ts_ns = 0, requested = 0, used = 0, limit = 0, largest_free = 0, device_free = 0;
  std::uint32_t api = 0, reason = 0;  // numbers in Names
  bool is_repeat = false;  // a repeat of the thread's previous refusal, because a layer of the program retried
};

struct PageMoment {
  enum class Why { peak, refusal, sample, end };
  Why why = Why::sample;
  std::uint64_t seq = 0, ts_ns = 0, used = 0, reserved = 0;
  MapMoment map;
};

using SiteFigures = History::Figures;

struct PageDevice {
  Series series;
  std::vector<PageRefusal> refusals;
  std::uint64_t left_out_refusals = 0;
  std::vector<PageMoment> moments;
  std::vector<SiteFigures> sites;  // by the number of the site in the log
  std::vector<std::uint32_t> top;  // the names of the callers that held the most at the peak or at the end
  CallerStack stack;               // the memory that the callers in `top` held over time
};

struct PageLog {
  explicit PageLog(Names &names) : history(History::By::caller), sites(names) {}

  std::string path;
  bool is_empty = false;  // the log has no lines
  History history;
  Sites sites;
  std::uint64_t start_unix_ns = 0;
  std::vector<PageDevice> devices;  // in the order of the history's devices
};

// `samples`: the number of additional moments shown between the first and the last. Returns an exit status. A status
// other than 0 means that the log is incomplete or there is no room for the temporary file; a printed line says which.
int read_page_log(const std::string &path, std::size_t samples, Names &names, PageLog &log);

}  // namespace ration::logs

// What a page shows of one log. Layer: logs. Threads: one.
//
// The log is read once, for what it adds up to; then what a map needs of it again, from a temporary file: with the
// peaks known, who held what at them.
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
  std::uint32_t api = 0, reason = 0;  // of Names
  bool is_repeat = false;             // of the one before by its thread: a layer of the program asked once more
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
  std::vector<SiteFigures> sites;  // by site of the log
  std::vector<std::uint32_t> top;  // names of the callers that held most, at the peak or at the end
  CallerStack stack;               // of these
};

struct PageLog {
  explicit PageLog(Names &names) : history(History::By::caller), sites(names) {}

  std::string path;
  bool is_empty = false;  // it has no line
  History history;
  Sites sites;
  std::uint64_t start_unix_ns = 0;
  std::vector<PageDevice> devices;  // as those of the history
};

// `samples`: so many moments between the first and the last are shown, too. Returns an exit status; not 0: it is no
// whole log, or there is no room for the temporary file, which a line says.
int read_page_log(const std::string &path, std::size_t samples, Names &names, PageLog &log);

}  // namespace ration::logs

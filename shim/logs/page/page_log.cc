#include "logs/page/page_log.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "logs/history/read_history.h"
#include "logs/report/refusal_text.h"

namespace ration::logs {
namespace {

using Type = Record::Type;
using Why = PageMoment::Why;

constexpr std::size_t kRefusals = 10'000;                 // of a device, kept one by one
constexpr std::size_t kStackBuckets = 300;                // of a device
constexpr std::uint64_t kRepeatedWithin = 1'000'000'000;  // of one refusal by several layers of the program
constexpr std::size_t kRefusalMoments = 12;               // for each device
constexpr std::uint64_t kBlocksLookedAt = 30'000'000;     // in all samples; keeps a log with millions of blocks quick

bool moves_figures(Type type) {
  return type == Type::alloc || type == Type::free || type == Type::slab_alloc || type == Type::slab_free ||
         type == Type::sample;
}

// Picks `most` values evenly, including the first and the last.
template <typename Value>
std::vector<Value> thinned(const std::vector<Value> &values, std::size_t most) {
  if (values.size() <= most || most < 2) {
    return values;
  }
  std::vector<Value> kept;
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(values[i * (values.size() - 1) / (most - 1)]);
  }
  return kept;
}

std::vector<std::uint32_t> top_callers(const History::Device &device, Names &names) {
  History::Groups most = device.at_peak;
  for (const auto &[name, group] : device.live) {
    History::Group &held = most[name];
    held.count += group.count;
    held.bytes = std::max(held.bytes, group.bytes);
  }
  std::vector<std::uint32_t> top;
  for (const auto &[name, group] : History::largest_first(most)) {
    if (top.size() < CallerStack::kCallers) {
      top.push_back(names.number(name));
    }
  }
  return top;
}

// For each site, the index of its caller in `top`; for callers that are not in `top`, the index after the last.
std::vector<std::size_t> ranks_of(const std::vector<Site> &sites, const std::vector<std::uint32_t> &top) {
  std::vector<std::size_t> ranks;
  for (const Site &site : sites) {
    const auto found = std::find(top.begin(), top.end(), site.caller);
    ranks.push_back(found == top.end() ? CallerStack::kCallers : static_cast<std::size_t>(found - top.begin()));
  }
  return ranks;
}

// Reads the log record by record.
class Outline {
 public:
  Outline(Names &names, PageLog &log, EventFile &events) : names_(names), log_(log), events_(events) {}

  void add(const Record &record) {
    log_.history.add(record);
    log_.devices.resize(log_.history.devices().size());
    last_seq_ = record.number("seq");
    events_.add(pool_event(record, log_.sites.add(record), names_));
    if (record.type == Type::meta) {
      log_.start_unix_ns = record.number("start_unix_ns");
    } else if (moves_figures(record.type) && record.device() < log_.devices.size()) {
      const History::Device &now = log_.history.devices()[record.device()];
      log_.devices[record.device()].series.add({record.number("ts"), now.live_bytes, now.reserved_bytes});
    } else if (record.type == Type::oom) {
      refuse(record);
    }
    if (record.type == Type::alloc) {
      refused_.erase(record.number("tid"));
    }
  }
  std::uint64_t last_seq() const { return last_seq_; }

 private:
  // Allocators free their caches and retry, perhaps with another function, before they report a failure.
  bool is_repeat(const Record &record) {
    const Asked asked{record.device(), record.number("req"), record.number("ts")};
    const auto [before, is_first] = refused_.try_emplace(record.number("tid"), asked);
    const Asked last = std::exchange(before->second, asked);
    return !is_first && last.device == asked.device && last.bytes == asked.bytes &&
           asked.ts_ns - last.ts_ns <= kRepeatedWithin;
  }
  void refuse(const Record &record) {
    PageDevice &device = log_.devices[record.device()];
    const bool repeats = is_repeat(record);
    if (device.refusals.size() == kRefusals) {
      ++device.left_out_refusals;
      return;
    }
    device.refusals.push_back({record.number("seq"), record.number("ts"), record.number("req"), record.number("used"),
                               record.number("limit"), record.number("largest_free"), record.number("device_free"),
                               names_.number(std::string(record.text("api"))),
                               names_.number(reason_words(std::string(record.text("reason")))), repeats});
  }

  Names &names_;
  PageLog &log_;
  EventFile &events_;
  struct Asked {
    std::size_t device;
    std::uint64_t bytes, ts_ns;
  };
  std::unordered_map<std::uint64_t, Asked> refused_;  // by thread: last refused request, with no allocation since
  std::uint64_t last_seq_ = 0;
};

// Reads the log's events again, now that the moments to show are known.
class Details {
 public:
  Details(std::size_t samples, std::uint64_t last_seq, Names &names, PageLog &log) : last_seq_(last_seq), log_(log) {
    for (std::size_t i = 0; i < log.devices.size(); ++i) {
      const History::Device &device = log.history.devices()[i];
      log.devices[i].top = top_callers(device, names);
      log.devices[i].stack = {log.history.last_ts_ns(), kStackBuckets};
      ranks_.push_back(ranks_of(log.sites.all(), log.devices[i].top));
      if (device.peak.seq != 0) {
        wanted_[device.peak.seq].push_back({i, Why::peak});
      }
      for (const PageRefusal &refusal : thinned(log.devices[i].refusals, kRefusalMoments)) {
        wanted_[refusal.seq].push_back({i, Why::refusal});
      }
      const auto &points = log.devices[i].series.points();
      for (std::size_t sample = 0; sample < samples && !points.empty(); ++sample) {
        const std::uint64_t span = points.back().ts_ns - points.front().ts_ns;
        sampled_.insert({points.front().ts_ns + span / (samples + 1) * (sample + 1), i});
      }
    }
    live_.resize(log.devices.size());
    used_.resize(log.devices.size(), 0);
  }

  void add(const PoolEvent &event) {
    map_.add(event);
    if (const PoolMap::Block *ended = map_.ended(); ended != nullptr && ended->is_charged) {
      History::Group &group = of(live_, ended->device, ended->note.site);
      --group.count;
      group.bytes -= ended->bytes;
      used_[ended->device] -= ended->bytes;
      restack(event.ts_ns, *ended, true);
    }
    if (event.type == PoolEvent::Type::alloc) {
      alloc(event);
    }
    look(event.seq, event.ts_ns);
  }
  void finish() {
    for (std::size_t i = 0; i < log_.devices.size(); ++i) {
      log_.devices[i].stack.finish(log_.history.last_ts_ns());
      live_[i].resize(log_.sites.all().size());
      log_.devices[i].sites.resize(log_.sites.all().size());
      for (std::size_t site = 0; site < live_[i].size(); ++site) {
        log_.devices[i].sites[site].left = live_[i][site];
      }
      if (!log_.devices[i].series.points().empty()) {
        take({i, Why::end}, last_seq_, log_.history.last_ts_ns());
      }
    }
  }

 private:
  using Groups = std::vector<History::Group>;  // by site

  static History::Group &of(std::vector<Groups> &groups, std::size_t device, std::uint32_t site) {
    if (groups[device].size() <= site) {
      groups[device].resize(site + 1);
    }
    return groups[device][site];
  }

  void alloc(const PoolEvent &event) {
    auto &sites = log_.devices[event.device].sites;
    if (sites.size() <= event.site) {
      sites.resize(event.site + 1);
    }
    ++sites[event.site].total.count;
    sites[event.site].total.bytes += event.requested;
    if (event.is_charged) {
      History::Group &group = of(live_, event.device, event.site);
      ++group.count;
      group.bytes += event.bytes;
      used_[event.device] += event.bytes;
      restack(event.ts_ns, *map_.begun(), false);
    }
  }
  void restack(std::uint64_t ts, const PoolMap::Block &block, bool is_less) {
    log_.devices[block.device].stack.change(ts, ranks_[block.device][block.note.site], block.bytes, is_less);
  }

  struct Wanted {
    std::size_t device;
    Why why;
  };

  void look(std::uint64_t seq, std::uint64_t ts) {
    if (const auto wanted = wanted_.find(seq); wanted != wanted_.end()) {
      for (const Wanted &each : wanted->second) {
        if (each.why == Why::peak) {
          keep_peak(each.device);
        }
        take(each, seq, ts);
      }
    }
    std::set<std::size_t> due;
    while (!sampled_.empty() && sampled_.begin()->first <= ts) {
      due.insert(sampled_.begin()->second);
      sampled_.erase(sampled_.begin());
    }
    for (const std::size_t device : due) {
      looked_at_ += map_.live();
      if (looked_at_ <= kBlocksLookedAt && last_[device] != seq) {
        take({device, Why::sample}, seq, ts);
      }
    }
  }

  void keep_peak(std::size_t device) {
    auto &sites = log_.devices[device].sites;
    for (std::size_t site = 0; site < live_[device].size(); ++site) {
      sites[site].peak = live_[device][site];
    }
  }

  void take(const Wanted &wanted, std::uint64_t seq, std::uint64_t ts) {
    last_[wanted.device] = seq;
    log_.devices[wanted.device].moments.push_back({wanted.why, seq, ts, used_[wanted.device],
                                                   reserved(wanted.device, ts),
                                                   map_.at(static_cast<std::uint32_t>(wanted.device))});
  }

  // The reserved bytes at the last point that is not after `ts`.
  std::uint64_t reserved(std::size_t device, std::uint64_t ts) const {
    const auto &points = log_.devices[device].series.points();
    const auto after = std::upper_bound(points.begin(), points.end(), ts,
                                        [](std::uint64_t at, const Series::Point &point) { return at < point.ts_ns; });
    return after == points.begin() ? 0 : std::prev(after)->reserved;
  }

  const std::uint64_t last_seq_;
  PageLog &log_;
  PoolMap map_;
  std::vector<std::vector<std::size_t>> ranks_;              // by device and site: the rank of the site's caller
  std::vector<Groups> live_;                                 // by device
  std::vector<std::uint64_t> used_;                          // by device
  std::map<std::uint64_t, std::vector<Wanted>> wanted_;      // by seq
  std::set<std::pair<std::uint64_t, std::size_t>> sampled_;  // time and device
  std::map<std::size_t, std::uint64_t> last_;                // seq of the last moment, by device
  std::uint64_t looked_at_ = 0;
};

int complain(const std::string &path, const std::string &why, int status) {
  cli::log_error("report: " + path + ": " + why);
  return status;
}

}  // namespace

int read_page_log(const std::string &path, std::size_t samples, Names &names, PageLog &log) {
  log.path = path;
  EventFile events;
  Outline outline(names, log, events);
  switch (each_record("report", path, [&outline](const Record &record) { outline.add(record); })) {
    case ReadTo::empty:
      log.is_empty = true;
      return cli::kUnreadable;
    case ReadTo::nowhere:
      return cli::kUnreadable;
    case ReadTo::cut:
      log.history.note_cut_off();
      break;
    case ReadTo::end:
      break;
  }
  log.history.finish();
  Details details(samples, outline.last_seq(), names, log);
  for (PoolEvent event; events.next(event);) {
    details.add(event);
  }
  if (!events.is_whole()) {
    return complain(path, "there is no room for a temporary file in /tmp", cli::kOurError);
  }
  details.finish();
  return 0;
}

}  // namespace ration::logs

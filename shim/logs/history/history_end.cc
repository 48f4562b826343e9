// Adds the end of a log to its history: totals, ages, and the groups that grow.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "logs/history/history.h"

namespace ration::logs {
namespace {

constexpr const char *kMissing = "unknown: the log lacks records";

}  // namespace

void History::take_totals(const Record &record) {
  const auto number = [](const nlohmann::json &value) {
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  };
  const nlohmann::json &peaks = record.list("peak");
  const nlohmann::json &reserved = record.list("reserved_peak");
  const nlohmann::json &live = record.list("live");
  totals_.assign(std::min(devices_.size(), peaks.size()), {});
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    totals_[i].peak = number(peaks[i]);
    totals_[i].reserved_peak = i < reserved.size() ? number(reserved[i]) : 0;
    if (i < live.size() && live[i].is_object()) {
      totals_[i].live_count = number(live[i].value("count", nlohmann::json()));
      totals_[i].live_bytes = number(live[i].value("bytes", nlohmann::json()));
    }
  }
}

void History::note_loss(std::uint64_t seq) {
  if (lost_at_ == 0) {
    std::transform(devices_.begin(), devices_.end(), std::back_inserter(sure_), [](const Device &each) {
      return Sure{0, each.peak, each.reserved_peak};
    });
  }
  lost_at_ = lost_until_ = seq;
  for (Sure &each : sure_) {
    each.live = 0;
  }
}

void History::correct_peaks(std::size_t ordinal) {
  Device &device = devices_[ordinal];
  const Sure sure = lost_at_ == 0            ? Sure{0, device.peak, device.reserved_peak}
                    : ordinal < sure_.size() ? sure_[ordinal]
                                             : Sure{};
  const Totals totals = ordinal < totals_.size() ? totals_[ordinal] : Totals{};
  const Moment peak = totals.peak > sure.peak.bytes ? Moment{totals.peak, 0, 0} : sure.peak;
  if (peak.bytes != device.peak.bytes) {
    device.peak = peak;
    device.at_peak.clear();
  }
  if (const std::uint64_t bytes = std::max(totals.reserved_peak, sure.reserved_peak.bytes);
      bytes != device.reserved_peak.bytes) {
    device.reserved_peak = bytes == sure.reserved_peak.bytes ? sure.reserved_peak : Moment{bytes, 0, 0};
  }
}

// Corrects what was never freed if records are missing: only the `end` record includes those.
void History::fill_in(Device &device, const Totals &totals) {
  const Group seen = std::accumulate(device.live.begin(), device.live.end(), Group(), [](Group sum, const auto &each) {
    return Group{sum.bytes + each.second.bytes, sum.count + each.second.count};
  });
  Group missing{totals.live_bytes - seen.bytes, totals.live_count - seen.count};
  if (totals.live_count < seen.count || totals.live_bytes < seen.bytes || (missing.count == 0 && missing.bytes != 0)) {
    missing = {totals.live_bytes, totals.live_count};  // of which blocks is unknown
    device.live.clear();
    device.live_stacks.clear();
    device.live_others.clear();
  }
  if (missing.count != 0) {
    device.live[kMissing] = device.live_others[kMissing] = missing;
  }
  const std::uint64_t counted = device.allocs - device.frees;
  device.frees += minus_or_zero(counted, totals.live_count);
  device.unseen = minus_or_zero(totals.live_count, counted);
  device.live_bytes = totals.live_bytes;
}

// The `end` record counts for all devices together, so its counts are of a device only if no other was used.
void History::count_missing() {
  Device *used = nullptr;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].allocs != 0 || i >= totals_.size() || totals_[i].peak != 0) {
      if (used != nullptr || i >= totals_.size()) {
        return;
      }
      used = &devices_[i];
    }
  }
  if (used != nullptr && of_end_.allocs >= used->allocs && of_end_.allocs - of_end_.frees == used->live_count()) {
    used->allocs = of_end_.allocs;
    used->frees = of_end_.frees;
    used->unseen = 0;
    used->has_all_counts = true;
  }
}

void History::find_growth(Device &device) {
  for (const auto &[name, group] : device.live) {
    const auto found = growth_.find(&group);
    if (found == growth_.end()) {
      continue;
    }
    auto &[levels, oldest_ns] = found->second;
    levels.note(device.work, group.bytes);
    // What a program does after it was refused, such as waiting for others, says nothing about what it held before. A
    // caller that was refused last has not stopped growing, however long the program paused before.
    const bool is_refused = is_refused_last_ && name == refused_last_;
    const std::uint64_t end_ns = is_refused_last_ ? refused_last_ns_ : last_ts_ns_;
    if (const auto rise = levels.rise(device.work, is_refused ? 0 : device.work.quiet_ns(end_ns))) {
      device.growing.push_back({name, *rise, std::max(oldest_ns, group.oldest_ns), device.work.is_counted_in_allocs()});
    }
  }
  std::stable_sort(device.growing.begin(), device.growing.end(), [](const Growing &a, const Growing &b) {
    return a.rise.to - a.rise.from > b.rise.to - b.rise.from;
  });
}

void History::finish() {
  for (Device &each : devices_) {
    keep_peak(each);
    each.has_all_counts = is_whole();
  }
  blocks_.each([this](const Block &block) {
    if (block.note.live == nullptr) {
      return;
    }
    if (may_be_freed(block)) {
      for (Group *each : {block.note.live, block.note.place}) {
        --each->count;
        each->bytes -= block.bytes;
      }
      return;
    }
    Group &group = *block.note.live;
    group.oldest_ns = std::max(group.oldest_ns, minus_or_zero(last_ts_ns_, block.ts_ns));
  });
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device &each = devices_[i];
    if (dropped_ == 0) {
      find_growth(each);
    } else {
      correct_peaks(i);
      if (i < totals_.size()) {
        fill_in(each, totals_[i]);
      }
    }
    for (const Refusal &refusal : each.refusals) {
      seen += refusal.api != "cuIpcGetMemHandle" ? refusal.count : 0;  // the end counts refused handles separately
    }
  }
  if (ended_ && dropped_ != 0) {
    count_missing();
  }
  unseen_refusals_ = minus_or_zero(ooms_, seen);
  growth_ = {};
  places_ = {};
  blocks_ = {};  // frees most of the memory if a log has millions of leaks
}

}  // namespace ration::logs

// Adds the end of a log to its history: totals, ages, and the groups that grow.
#include <algorithm>

#include "logs/history/history.h"

namespace ration::logs {
namespace {

constexpr const char *kMissing = "records that the log lacks";

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

// Corrects the figures if records are missing: only the `end` record includes those.
void History::fill_in(Device &device, const Totals &totals) {
  if (totals.peak > device.peak.bytes) {
    device.peak = {totals.peak, 0, 0};
    device.at_peak.clear();
  }
  if (totals.reserved_peak > device.reserved_peak.bytes) {
    device.reserved_peak = {totals.reserved_peak, 0, 0};
  }
  const std::uint64_t seen = device.allocs - device.frees;
  if (totals.live_count > seen && totals.live_bytes >= device.live_bytes) {
    const Group missing{totals.live_bytes - device.live_bytes, totals.live_count - seen};
    device.live[kMissing] = missing;
    device.live_others[kMissing] = missing;
    device.unseen = missing.count;
    device.live_bytes = totals.live_bytes;
  }
  if (totals.live_count < seen) {  // frees are missing, and it is unknown of which blocks
    device.frees += seen - totals.live_count;
    device.live_bytes = totals.live_bytes;
    device.live.clear();
    device.live_stacks.clear();
    device.live_others.clear();
    if (totals.live_count != 0) {
      device.live[kMissing] = device.live_others[kMissing] = {totals.live_bytes, totals.live_count};
    }
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
    if (const auto rise = levels.rise(device.work, last_ts_ns_)) {
      device.growing.push_back({name, *rise, std::max(oldest_ns, group.oldest_ns)});
    }
  }
  std::stable_sort(device.growing.begin(), device.growing.end(), [](const Growing &a, const Growing &b) {
    return a.rise.to - a.rise.from > b.rise.to - b.rise.from;
  });
}

void History::finish() {
  for (Device &each : devices_) {
    keep_peak(each);
  }
  blocks_.each([this](const Block &block) {
    if (block.note.live != nullptr) {
      Group &group = *block.note.live;
      group.oldest_ns = std::max(group.oldest_ns, minus_or_zero(last_ts_ns_, block.ts_ns));
    }
  });
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    find_growth(devices_[i]);
    if (dropped_ != 0 && i < totals_.size()) {
      fill_in(devices_[i], totals_[i]);
    }
  }
  growth_ = {};
  places_ = {};
  blocks_ = {};  // frees most of the memory if a log has millions of leaks
}

}  // namespace ration::logs

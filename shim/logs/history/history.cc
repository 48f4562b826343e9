#include "logs/history/history.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>

#include "base/saturating.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/history/limit_need.h"

namespace ration::logs {
namespace {

using Type = Record::Type;
using By = History::By;

constexpr std::array<std::pair<const char *, By>, 6> kGroupings = {{{"function", By::function},
                                                                    {"library", By::library},
                                                                    {"kind", By::kind},
                                                                    {"stream", By::stream},
                                                                    {"thread", By::thread},
                                                                    {"size", By::size}}};

constexpr const char *kMissing = "records that the log lacks";
constexpr std::uint64_t kMillion = 1'000'000;

// The handle as debuggers show it; 1 and 2 are the driver's own (cuda.h, CU_STREAM_LEGACY).
std::string stream_name(std::uint64_t handle) {
  constexpr const char *kNamed[] = {"no stream", "the legacy default stream", "the per-thread default stream"};
  if (handle < std::size(kNamed)) {
    return kNamed[handle];
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), handle, 16);
  return "stream 0x" + std::string(text, end);
}

}  // namespace

std::string size_class(std::uint64_t bytes) {
  const std::uint64_t from = std::bit_floor(std::max<std::uint64_t>(bytes, 1));
  return config::show_bytes(from) + " to " + config::show_bytes(from * 2);
}

std::variant<By, std::string> read_grouping(const std::string &name) {
  std::string names;
  for (const auto &[known, by] : kGroupings) {
    if (name == known) {
      return by;
    }
    names += names.empty() ? "" : " ";
    names += known;
  }
  return config::shown(name) + ": " + config::error_in_choice(name, names);
}

std::vector<History::NamedGroup> History::largest_first(const Groups &groups) {
  std::vector<NamedGroup> sorted;
  std::copy_if(groups.begin(), groups.end(), std::back_inserter(sorted),
               [](const auto &group) { return group.second.count != 0; });
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const NamedGroup &a, const NamedGroup &b) { return a.second.bytes > b.second.bytes; });
  return sorted;
}

History::Device &History::device(std::size_t ordinal) {
  if (ordinal >= devices_.size()) {
    devices_.resize(ordinal + 1);
    is_at_peak_.resize(ordinal + 1, false);
  }
  return devices_[ordinal];
}

std::string History::group_of(const Record &record) {
  switch (by_) {
    case By::library:
    case By::function:
    case By::function_in_file:
      if (const std::uint64_t stack = record.number("stack"); stack != 0) {
        const auto [found, is_new] = callers_.try_emplace(stack);
        if (is_new) {
          found->second = by_ == By::library    ? stacks_.library(stack)
                          : by_ == By::function ? stacks_.caller(stack)
                                                : stacks_.caller(stack, StackTable::Lines::left_out);
        }
        if (!found->second.empty()) {
          return found->second;
        }
      }
      break;
    case By::kind:
      return std::string(record.text("kind"));
    case By::stream:
      return stream_name(record.number("stream"));
    case By::thread:
      return "thread " + std::to_string(record.number("tid"));
    case By::size:
      return size_class(record.number("req"));
    case By::call:
      break;
  }
  return std::string(record.text("api"));
}

void History::reserve(Device &device, std::uint64_t bytes, const Record &record) {
  device.reserved_bytes += bytes;
  if (device.reserved_bytes > device.reserved_peak.bytes) {
    device.reserved_peak = {device.reserved_bytes, record.number("seq"), record.number("ts")};
  }
}

void History::release(Device &device, std::uint64_t bytes) {
  device.reserved_bytes -= std::min(device.reserved_bytes, bytes);
}

void History::keep_peak(Device &device) {
  auto &&is_at_peak = is_at_peak_[static_cast<std::size_t>(&device - devices_.data())];
  if (is_at_peak) {
    device.at_peak = device.live;
    is_at_peak = false;
  }
}

void History::begin(Block &block, const Record &record) {
  Device &where = device(block.device);
  const std::string group = group_of(record);
  Group &in_all = where.in_all[group];
  Held &held = block.note;
  held.is_host = !block.is_charged && record.text("kind") == "host";
  held.is_own = record.text("src") == "driver";
  held.in_granules = where.backing == "vmm" && block.slab != 0;
  held.live = &(held.is_host ? where.host.live : where.live)[group];
  has_stacks_ |= block.stack != 0;
  held.place = block.stack != 0 ? &(held.is_host ? where.host.live_stacks : where.live_stacks)[block.stack]
                                : &(held.is_host ? where.host.live_others : where.live_others)[group];
  ++in_all.count;
  in_all.bytes += block.requested;
  if (!block.is_charged && !held.is_host) {
    return;
  }
  for (Group *each : {held.live, held.place}) {
    ++each->count;
    each->bytes += block.bytes;
  }
  if (held.is_host) {
    ++where.host.count;
    where.host.bytes += block.bytes;
    return;
  }
  ++where.allocs;
  where.live_bytes += block.bytes;
  if (where.live_bytes > where.peak.bytes) {
    where.peak = {where.live_bytes, block.seq, block.ts_ns};
    is_at_peak_[block.device] = true;
  }
  if (held.is_own) {
    reserve(where, block.bytes, record);
    where.driver_blocks += block.bytes;
  }
  if (held.in_granules) {
    where.granules.add(block.address, block.bytes);
  }
}

void History::end(const Block &block) {
  const Held &held = block.note;
  if (!block.is_charged && !held.is_host) {
    return;
  }
  Device &where = device(block.device);
  if (block.is_charged) {
    keep_peak(where);
  }
  for (Group *each : {held.live, held.place}) {
    --each->count;
    each->bytes -= block.bytes;
  }
  if (held.is_host) {
    --where.host.count;
    where.host.bytes -= block.bytes;
    return;
  }
  ++where.frees;
  where.live_bytes -= block.bytes;
  if (held.is_own) {
    release(where, block.bytes);
    where.driver_blocks -= block.bytes;
  }
  if (held.in_granules) {
    where.granules.remove(block.address, block.bytes);
  }
}

namespace {

History::RefusedBy refused_by(const Record &record) {
  // Logs of earlier versions have no guarantees.
  const std::uint64_t claimed = std::max(record.number("group_claimed"), record.number("group_reserved"));
  History::RefusedBy by{std::string(record.text("group")), record.number("group_limit"), claimed, {}};
  for (const nlohmann::json &fields : record.list("holders")) {
    const Record holder{Type::other, fields};
    by.holders.push_back(
        {std::string(holder.text("exe")), holder.number("pid"), holder.number("reserved"), holder.number("guarantee")});
  }
  return by;
}

}  // namespace

void History::oom(const Record &record) {
  Device &where = device(record.device());
  const std::uint64_t asked = record.number("req");
  const std::string_view api = record.text("api");
  const std::string_view reason = record.text("reason");
  const bool is_first = where.refusals.empty();
  auto entry = std::find_if(where.refusals.begin(), where.refusals.end(),
                            [&](const Refusal &each) { return each.api == api && each.reason == reason; });
  if (entry == where.refusals.end()) {
    entry = where.refusals.emplace(where.refusals.end());
    entry->api = api;
    entry->reason = reason;
    entry->first_seq = record.number("seq");
    entry->mode = where.mode;
    entry->backing = where.backing;
    entry->total = where.total;
  }
  if (++entry->count == 1 || asked > entry->largest) {
    entry->largest = asked;
    entry->stack = record.number("stack");
    entry->used = record.number("used");
    entry->limit = record.number("limit");
    entry->largest_free = record.number("largest_free");
    entry->device_free = record.known_number("device_free");
    entry->need = need_of(record, where, dropped_ == 0);
    if (!is_first) {
      entry->need.sure = Need::Sure::least;  // what was refused before would be held, too
    }
    entry->by = refused_by(record);
  }
  const std::uint64_t limit_now = record.number("limit");
  const std::uint64_t limit_before = where.later_limit != 0 ? where.later_limit
                                     : where.limit != 0     ? where.limit
                                                            : where.total;
  if (where.total != 0 && limit_now != 0 && limit_now != limit_before) {
    where.later_limit = limit_now;
  }
  const std::uint64_t free_bytes = minus_or_zero(record.number("limit"), record.number("used"));
  if (reason == "pool_holds" && free_bytes >= asked && free_bytes > 0) {
    const std::uint64_t pieces = minus_or_zero(free_bytes, record.number("largest_free"));
    const auto ppm =
        static_cast<std::uint64_t>(static_cast<double>(pieces) * kMillion / static_cast<double>(free_bytes));
    where.fragmentation_ppm = std::max(where.fragmentation_ppm, ppm);
  }
}

void History::add(const Record &record) {
  last_ts_ns_ = std::max(last_ts_ns_, record.number("ts"));
  switch (record.type) {
    case Type::mod:
    case Type::frame:
    case Type::stack:
      stacks_.add(record);
      break;
    case Type::meta:
      stacks_.add(record);
      program_ = record.text("exe");
      pid_ = record.number("pid");
      left_out_ = record.missing();
      dropped_ += left_out_;
      for (const nlohmann::json &each : record.list("devices")) {
        Record of_device;
        of_device.fields = each;
        Device &described = device(of_device.device());
        described.name = of_device.text("name");
        described.total = of_device.number("total");
        described.limit = of_device.number("limit");
        described.limit_asked = of_device.flag("limit_asked");
        described.mode = of_device.text("mode");
        described.mode = described.mode.empty() ? std::string(record.text("mode")) : described.mode;
        described.backing = of_device.text("backing");
        described.group_limit = of_device.number("group_limit");
      }
      break;
    case Type::alloc:
    case Type::free:
      blocks_.add(record);
      if (const Block *ended = blocks_.ended(); ended != nullptr) {
        end(*ended);
      }
      if (Block *begun = blocks_.begun(); begun != nullptr) {
        begin(*begun, record);
      }
      break;
    case Type::slab_alloc:
      if (record.text("backend") == "cuMemCreate") {
        device(record.device()).granules.note_granule(record.number("size"));
      }
      reserve(device(record.device()), record.number("size"), record);
      break;
    case Type::slab_free:
      release(device(record.device()), record.number("size"));
      break;
    case Type::sample: {
      Device &where = device(record.device());
      release(where, where.driver_pools);
      where.driver_pools = record.number("pool_reserved");
      reserve(where, where.driver_pools, record);
      break;
    }
    case Type::wait: {
      Device &where = device(record.device());
      ++where.waits;
      where.waited_ns += record.number("dur");
      break;
    }
    case Type::oom:
      oom(record);
      break;
    case Type::dropped:
      dropped_ += record.missing();
      break;
    case Type::end:
      ended_ = true;
      take_totals(record);
      failed_allocs_ = record.number("failed_allocs");
      failed_frees_ = record.number("failed_frees");
      break;
    case Type::trim:
    case Type::other:
      break;
  }
}

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

// Of records that are missing only the end tells.
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
}

void History::finish() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    keep_peak(devices_[i]);
    if (dropped_ != 0 && i < totals_.size()) {
      fill_in(devices_[i], totals_[i]);
    }
  }
  blocks_ = {};  // of a log with millions of leaks: most of what it takes
}

std::uint64_t History::allocs() const {
  std::uint64_t sum = 0;
  for (const Device &each : devices_) {
    sum += each.allocs;
  }
  return sum;
}

std::uint64_t History::frees() const {
  std::uint64_t sum = 0;
  for (const Device &each : devices_) {
    sum += each.frees;
  }
  return sum;
}

std::uint64_t History::refusals() const {
  std::uint64_t sum = 0;
  for (const Device &each : devices_) {
    for (const Refusal &refusal : each.refusals) {
      sum += refusal.count;
    }
  }
  return sum;
}

const History::Device *History::busiest() const {
  const auto most = std::max_element(devices_.begin(), devices_.end(),
                                     [](const Device &a, const Device &b) { return a.peak.bytes < b.peak.bytes; });
  return most == devices_.end() ? nullptr : &*most;
}

}  // namespace ration::logs

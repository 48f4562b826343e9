// Adds up the `oom` records of a log.
#include <algorithm>

#include "logs/history/history.h"
#include "logs/history/limit_need.h"

namespace ration::logs {
namespace {

constexpr std::size_t kHolders = 5;  // that are shown by name
constexpr std::uint64_t kMillion = 1'000'000;

// `total`: the device's memory.
History::RefusedBy refused_by(const Record &record, std::uint64_t total) {
  // Logs of earlier versions have no guarantees, and so no claimed bytes; the reserved bytes count then.
  const std::uint64_t claimed = std::max(record.number("group_claimed"), record.number("group_reserved"));
  History::RefusedBy by{
      std::string(record.text("group")), record.number("group_limit"), claimed, {}, record.number("more_holders")};
  for (const nlohmann::json &fields : record.list("holders")) {
    const Record holder(fields);
    by.holders.push_back(
        {std::string(holder.text("exe")), holder.number("pid"), holder.number("reserved"), holder.number("guarantee")});
  }
  const std::optional<std::uint64_t> device_free = record.known_number("device_free");
  if (record.text("reason") == "device" && device_free && !by.holders.empty() && by.more_holders == 0) {
    by.outside = minus_or_zero(total, *device_free);
    for (const History::RefusedBy::Holder &each : by.holders) {
      by.outside = minus_or_zero(by.outside, each.reserved);
    }
  }
  return by;
}

void note_holders(const History::Device &device, History::Refusal &refusal) {
  refusal.held = History::largest_first(device.live);
  refusal.held_by_others = {};
  for (std::size_t i = kHolders; i < refusal.held.size(); ++i) {
    ++refusal.held_by_others.count;
    refusal.held_by_others.bytes += refusal.held[i].second.bytes;
  }
  refusal.held.resize(std::min(refusal.held.size(), kHolders));
}

}  // namespace

void History::oom(const Record &record) {
  if (!is_refused_last_) {
    is_refused_last_ = true;
    refused_last_ns_ = record.number("ts");
    refused_last_ = record.number("stack") != 0 ? group_of(record) : "";
  }
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
    entry->first = {asked, record.number("seq"), record.number("ts")};
    entry->mode = where.mode;
    entry->backing = where.backing;
    entry->total = where.total;
  }
  if (++entry->count == 1 || asked > entry->largest.bytes) {
    entry->largest = {asked, record.number("seq"), record.number("ts")};
    entry->stack = record.number("stack");
    entry->used = record.number("used");
    entry->limit = record.number("limit");
    entry->largest_free = record.number("largest_free");
    entry->device_free = record.known_number("device_free");
    entry->need = need_of(record, where, dropped_ == 0, is_first);
    entry->lacking = record.number("lacking");
    entry->by = refused_by(record, where.total);
    note_holders(where, *entry);
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

}  // namespace ration::logs

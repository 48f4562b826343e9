#include "logs/history/history.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::logs {
namespace {

using Type = Record::Type;
using By = History::By;

constexpr std::array<std::pair<const char *, By>, 4> kGroupings = {
    {{"caller", By::caller}, {"library", By::library}, {"thread", By::thread}, {"size", By::size}}};

constexpr std::uint64_t kDeviceNumbers = 4096;  // the reader accepts no higher ones

}  // namespace

std::string size_class(std::uint64_t bytes) {
  const std::uint64_t from = std::bit_floor(std::max<std::uint64_t>(bytes, 1));
  return config::show_bytes(from) + " to " + config::show_bytes(from * 2);
}

const char *History::title_of(By by) {
  switch (by) {
    case By::library:
      return "LIBRARY";
    case By::thread:
      return "THREAD";
    case By::size:
      return "SIZE";
    default:
      return "CALLER";
  }
}

bool History::knows_peak() const {
  if (ended_) {
    return dropped_ == 0 || totals_.size() >= devices_.size();
  }
  return dropped_ == 0 && !cut_off_ &&
         std::any_of(devices_.begin(), devices_.end(), [](const Device &each) { return each.peak.bytes != 0; });
}

bool History::lacks_callers() const {
  return !has_stacks_ && by_ != By::thread && by_ != By::size &&
         std::any_of(devices_.begin(), devices_.end(), [](const Device &each) { return !each.in_all.empty(); });
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
    case By::caller:
    case By::caller_in_file:
      if (const std::uint64_t stack = record.number("stack"); stack != 0) {
        const auto [found, is_new] = callers_.try_emplace(stack);
        if (is_new) {
          found->second = by_ == By::library  ? stacks_.library(stack)
                          : by_ == By::caller ? stacks_.caller(stack)
                                              : stacks_.caller(stack, StackTable::Lines::left_out);
        }
        if (!found->second.empty()) {
          return found->second;
        }
      }
      break;
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

History::Places History::places_of(Device &device, const Block &block, bool is_host, const Record &record) {
  const bool is_by_stack = block.stack != 0 && by_ != By::thread && by_ != By::size;
  Places unkept;
  Places &places =
      is_by_stack ? places_[(block.stack * kDeviceNumbers + block.device) * 2 + (is_host ? 1 : 0)] : unkept;
  if (places.live != nullptr) {
    return places;
  }
  const std::string group = group_of(record);
  places.in_all = &device.in_all[group];
  places.live = &(is_host ? device.host.live : device.live)[group];
  places.place = block.stack != 0 ? &(is_host ? device.host.live_stacks : device.live_stacks)[block.stack]
                                  : &(is_host ? device.host.live_others : device.live_others)[group];
  places.growth = &growth_[places.live];
  return places;
}

void History::begin(Block &block, const Record &record) {
  Device &where = device(block.device);
  Held &held = block.note;
  held.is_host = !block.is_charged && record.text("kind") == "host";
  held.is_own = record.text("src") == "driver";
  held.in_granules = where.backing == "vmm" && block.slab != 0;
  has_stacks_ |= block.stack != 0;
  static_cast<Places &>(held) = places_of(where, block, held.is_host, record);
  ++held.in_all->count;
  held.in_all->bytes += block.requested;
  if (!block.is_charged && !held.is_host) {
    return;
  }
  if (block.is_charged) {
    held.growth->levels.note(where.work, held.live->bytes);
    where.work.alloc(block.ts_ns);
    is_refused_last_ = false;
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
  if (lost_at_ != 0) {
    sure_.resize(devices_.size());
    Sure &sure = sure_[block.device];
    sure.live += block.bytes;
    sure.peak = sure.live > sure.peak.bytes ? Moment{sure.live, block.seq, block.ts_ns} : sure.peak;
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
    held.growth->levels.note(where.work, held.live->bytes);
    where.work.free(last_ts_ns_);
    held.growth->oldest_ns = std::max(held.growth->oldest_ns, minus_or_zero(last_ts_ns_, block.ts_ns));
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
  if (lost_at_ != 0 && block.seq > lost_at_) {
    sure_[block.device].live -= block.bytes;
  }
  if (held.is_own) {
    release(where, block.bytes);
    where.driver_blocks -= block.bytes;
  }
  if (held.in_granules) {
    where.granules.remove(block.address, block.bytes);
  }
}

void History::add(const Record &record) {
  last_ts_ns_ = std::max(last_ts_ns_, record.number("ts"));
  switch (record.type) {
    case Type::mod:
    case Type::frame:
    case Type::stack:
    case Type::names:
      stacks_.add(record);
      break;
    case Type::meta:
      stacks_.add(record);
      program_ = record.text("exe");
      ration_version_ = record.text("ver");
      driver_version_ = record.number("driver");
      pid_ = record.number("pid");
      left_out_ = record.missing();
      dropped_ += left_out_;
      for (const nlohmann::json &each : record.list("devices")) {
        const Record of_device(each);
        Device &described = device(of_device.device());
        described.name = of_device.text("name");
        described.uuid = of_device.text("uuid");
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
      seen_frees_ += record.type == Type::free                                   ? (record.is_charged() ? 1 : 0)
                     : blocks_.ended() != nullptr && blocks_.ended()->is_charged ? 1
                                                                                 : 0;
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
      note_loss(record.number("seq"));
      dropped_ += record.missing();
      break;
    case Type::end:
      ended_ = true;
      take_totals(record);
      of_end_ = {record.number("allocs"), record.number("frees")};
      if (const std::uint64_t all = left_out_ + record.number("dropped"); all > dropped_) {
        dropped_ = all;  // a `dropped` record may be lost
        lost_until_ = UINT64_MAX;
      }
      failed_allocs_ = record.number("failed_allocs");
      failed_frees_ = record.number("failed_frees");
      ooms_ = record.number("ooms");
      asked_ = {record.number("unknown_names"), record.texts("unknown"), record.number("unknown_versions"),
                record.texts("newer")};
      break;
    case Type::trim:
    case Type::other:
      break;
  }
}

std::uint64_t History::Device::refusal_count() const {
  return std::accumulate(refusals.begin(), refusals.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Refusal &each) { return sum + each.count; });
}

std::vector<std::pair<std::string, History::Figures>> History::Device::figures() const {
  const auto of = [](const Groups &groups, const std::string &name) {
    const auto found = groups.find(name);
    return found != groups.end() ? found->second : Group{};
  };
  std::vector<std::pair<std::string, Figures>> all;
  for (const auto &[name, total] : in_all) {
    all.push_back({name, {of(at_peak, name), total, of(live, name)}});
  }
  return all;
}

const History::Device *History::busiest() const {
  const auto most = std::max_element(devices_.begin(), devices_.end(),
                                     [](const Device &a, const Device &b) { return a.peak.bytes < b.peak.bytes; });
  return most == devices_.end() ? nullptr : &*most;
}

}  // namespace ration::logs

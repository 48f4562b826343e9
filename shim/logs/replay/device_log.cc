#include "logs/replay/device_log.h"

#include <algorithm>

#include "logs/replay/granule_arena.h"

namespace ration::logs {
namespace {

using pool::replay::DeviceStep;
using Type = Record::Type;
using StepKind = DeviceStep::Kind;

constexpr std::uint64_t kLostPart = 1024;  // as policy/block_pool/granule_support.cc

}  // namespace

pool::replay::Backing DeviceLog::Device::backing_under(std::uint64_t limit) const {
  const bool loses_much = !backing_is_asked && limit % pool::replay::GranuleArena::kPageBytes > limit / kLostPart;
  return backing == "slab" || loses_much ? pool::replay::Backing::slab : pool::replay::Backing::vmm;
}

DeviceLog::Device &DeviceLog::device(const Record &record) {
  devices_.resize(std::max(devices_.size(), record.device() + 1));
  return devices_[record.device()];
}

std::uint32_t DeviceLog::pool_of(Device &device, std::uint64_t context) {
  const auto found = std::find_if(device.pools.begin(), device.pools.end(),
                                  [context](const Pool &pool) { return pool.context == context; });
  if (found == device.pools.end()) {
    device.pools.push_back({context, {}});
    return device.trace.pools++;
  }
  return static_cast<std::uint32_t>(found - device.pools.begin());
}

void DeviceLog::add_step(Device &device, DeviceStep step, const Record &record) {
  step.record = record.number("seq");
  device.trace.steps.push_back(step);
  device.apis.emplace_back(record.text("api"));
  device.trace.peak_bytes = std::max(device.trace.peak_bytes, device.requested + device.other);
  device.trace.peak_other_bytes = std::max(device.trace.peak_other_bytes, device.other);
  device.peak_live_blocks = std::max(device.peak_live_blocks, device.live_blocks);
}

void DeviceLog::set_other(Device &device, const Record &record) {
  const std::uint64_t in_pools = counts_ == Counts::reserved || !device.is_stream_ordered
                                     ? std::max(device.ordered_blocks, device.reserved)
                                     : device.ordered_blocks;
  const std::uint64_t other = device.other_blocks + in_pools;
  if (device.other != other) {
    device.other = other;
    add_step(device, {StepKind::kOther, 0, 0, device.other, 0}, record);
  }
}

void DeviceLog::begin(Block &block, const Record &record) {
  const std::string_view kind = record.text("kind");
  // A pitched request includes its rows' padding.
  const bool is_requested = kind == "device" && !record.text("api").starts_with("cuMemAllocPitch");
  const std::uint64_t bytes = is_requested ? block.requested : block.bytes;
  if (!block.is_charged || bytes == 0) {
    return;
  }
  Device &where = device(record);
  ++where.live_blocks;
  where.live_bytes += block.bytes;
  where.peak_bytes = std::max(where.peak_bytes, where.live_bytes);
  Counted &counted = block.note;
  counted = {bytes, std::nullopt, kind == "pool", where.trace.ids};
  if (kind == "device") {
    counted.pool = pool_of(where, record.number("ctx"));
    Pool &pool = where.pools[*counted.pool];
    (void)pool.requests.allocate(block.seq, bytes);
    pool.live_bytes += bytes;
    pool.peak_bytes = std::max(pool.peak_bytes, pool.live_bytes);
    where.requested += bytes;
    ++where.trace.ids;
    add_step(where, {StepKind::kAllocate, *counted.pool, counted.id, bytes, 0}, record);
  } else {
    (counted.is_ordered ? where.ordered_blocks : where.other_blocks) += bytes;
    where.is_stream_ordered |= counted.is_ordered;
    set_other(where, record);
  }
}

void DeviceLog::end(const Block &block, const Record &record) {
  const Counted &counted = block.note;
  if (counted.bytes == 0) {
    return;
  }
  Device &where = devices_[block.device];
  --where.live_blocks;
  where.live_bytes -= block.bytes;
  if (!counted.pool) {
    (counted.is_ordered ? where.ordered_blocks : where.other_blocks) -= counted.bytes;
    set_other(where, record);
    return;
  }
  (void)where.pools[*counted.pool].requests.free(block.seq);
  where.pools[*counted.pool].live_bytes -= counted.bytes;
  where.requested -= counted.bytes;
  add_step(where, {StepKind::kFree, *counted.pool, counted.id, counted.bytes, 0}, record);
}

void DeviceLog::sample(const Record &record) {
  Device &where = device(record);
  where.reserved = record.number("pool_reserved");
  where.peak_reserved = std::max(where.peak_reserved, where.reserved);
  set_other(where, record);
}

void DeviceLog::describe(const Record &meta) {
  program_ = meta.text("exe");
  pid_ = meta.number("pid");
  dropped_ += meta.missing();
  const nlohmann::json settings = meta.value("settings");
  for (const nlohmann::json &each : meta.list("devices")) {
    const Record of_device(each);
    Device &described = device(of_device);
    described.uuid = of_device.text("uuid");
    described.total = described.trace.total_bytes = of_device.number("total");
    described.limit = of_device.number("limit");
    described.backing_is_asked = settings.is_object() && settings.contains("backing");
    // Slabs that served only because of the limit will not serve under another one.
    described.backing =
        of_device.text("backing_reason").starts_with("the limit is not") ? "vmm" : of_device.text("backing");
  }
}

void DeviceLog::add(const Record &record) {
  switch (record.type) {
    case Type::meta:
      describe(record);
      break;
    case Type::alloc:
    case Type::free:
      blocks_.add(record);
      if (const Block *ended = blocks_.ended(); ended != nullptr) {
        end(*ended, record);
      }
      if (Block *begun = blocks_.begun(); begun != nullptr) {
        begin(*begun, record);
      }
      break;
    case Type::sample:
      sample(record);
      break;
    case Type::oom:
      device(record).refusals += record.text("api") != "cuIpcGetMemHandle" ? 1 : 0;
      break;
    case Type::dropped:
      dropped_ += record.missing();
      break;
    case Type::end:
      has_ended_ = true;
      dropped_ = std::max(dropped_, record.number("dropped"));  // because a `dropped` record may be lost too
      for (std::size_t i = 0; i < std::min(devices_.size(), record.list("peak").size()); ++i) {
        const nlohmann::json &peak = record.list("peak")[i];
        devices_[i].end_peak = peak.is_number_unsigned() ? peak.get<std::uint64_t>() : 0;
      }
      break;
    default:
      break;
  }
}

}  // namespace ration::logs

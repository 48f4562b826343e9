#include "logs/replay/device_log.h"

#include <algorithm>

namespace ration::logs {
namespace {

using pool::replay::DeviceStep;
using Type = Record::Type;
using StepKind = DeviceStep::Kind;

// Handles of physical memory and of arrays are numbers of their own.
std::string block_key(const Record &record) {
  return std::string(record.text("addr")) += record.text("kind");
}

}  // namespace

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
  device.note_peak();
  if (device.other != other) {
    device.other = other;
    add_step(device, {StepKind::kOther, 0, 0, device.other, 0}, record);
  }
}

void DeviceLog::alloc(const Record &record) {
  const std::string_view kind = record.text("kind");
  if (!record.is_charged()) {
    return;
  }
  // A pitched request includes its rows' padding.
  const bool is_requested = kind == "device" && !record.text("api").starts_with("cuMemAllocPitch");
  const std::uint64_t bytes = record.number(is_requested ? "req" : "size");
  if (bytes == 0) {
    return;
  }
  Device &where = device(record);
  ++where.live_blocks;
  Block block{record.device(), bytes, record.number("seq"), std::nullopt, kind == "pool", where.trace.ids};
  if (kind == "device") {
    block.pool = pool_of(where, record.number("ctx"));
    Pool &pool = where.pools[*block.pool];
    (void)pool.requests.allocate(block.record, bytes);
    pool.live_bytes += bytes;
    pool.peak_bytes = std::max(pool.peak_bytes, pool.live_bytes);
    where.requested += bytes;
    where.note_peak();
    ++where.trace.ids;
    add_step(where, {StepKind::kAllocate, *block.pool, block.id, bytes, 0}, record);
  } else {
    (block.is_ordered ? where.ordered_blocks : where.other_blocks) += bytes;
    where.is_stream_ordered |= block.is_ordered;
    set_other(where, record);
  }
  blocks_[block_key(record)] = block;
}

void DeviceLog::free(const Record &record) {
  const auto found = blocks_.find(block_key(record));
  if (found == blocks_.end()) {
    return;
  }
  const Block block = found->second;
  blocks_.erase(found);
  Device &where = devices_[block.device];
  --where.live_blocks;
  if (!block.pool) {
    (block.is_ordered ? where.ordered_blocks : where.other_blocks) -= block.bytes;
    set_other(where, record);
    return;
  }
  (void)where.pools[*block.pool].requests.free(block.record);
  where.pools[*block.pool].live_bytes -= block.bytes;
  where.requested -= block.bytes;
  add_step(where, {StepKind::kFree, *block.pool, block.id, block.bytes, 0}, record);
}

void DeviceLog::sample(const Record &record) {
  Device &where = device(record);
  where.reserved = record.number("pool_reserved");
  where.peak_reserved = std::max(where.peak_reserved, where.reserved);
  set_other(where, record);
}

void DeviceLog::add(const Record &record) {
  switch (record.type) {
    case Type::meta:
      program_ = record.text("exe");
      pid_ = record.number("pid");
      dropped_ += record.missing();
      for (const nlohmann::json &each : record.list("devices")) {
        Record of_device;
        of_device.fields = each;
        Device &described = device(of_device);
        described.total = of_device.number("total");
        described.limit = of_device.number("limit");
        described.backing = of_device.text("backing");
      }
      break;
    case Type::alloc:
      alloc(record);
      break;
    case Type::free:
      free(record);
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
      break;
    default:
      break;
  }
}

}  // namespace ration::logs

#include "logs/convert/stack_totals.h"

namespace ration::logs {

void StackTotals::keep_peak(const Place &place, Totals &totals) {
  const std::uint64_t peaks = devices_[place.device].peaks;
  if (totals.peak_ != peaks) {
    totals.at_peak_ = totals.live;
    totals.peak_ = peaks;
  }
}

void StackTotals::end_block(const Record &record) {
  const auto block = blocks_.remove(record);
  if (!block || !block->charged) {
    return;
  }
  const Place place{block->device, block->stack, block->api, block->kind};
  Totals &totals = places_[place];
  keep_peak(place, totals);
  --totals.live.blocks;
  totals.live.bytes -= block->bytes;
  devices_[place.device].live_bytes -= block->bytes;
}

void StackTotals::add(const Record &record) {
  stacks_.add(record);
  if (record.type == Record::Type::free) {
    end_block(record);
  }
  if (record.type != Record::Type::alloc) {
    return;
  }
  end_block(record);
  const LiveBlock &block = blocks_.add(record);
  if (!block.charged) {
    return;
  }
  const Place place{block.device, block.stack, block.api, block.kind};
  Totals &totals = places_[place];
  keep_peak(place, totals);
  for (Count *count : {&totals.total, &totals.live}) {
    ++count->blocks;
    count->bytes += block.bytes;
  }
  Device &device = devices_[place.device];
  device.live_bytes += block.bytes;
  if (device.live_bytes > device.peak_bytes) {
    device.peak_bytes = device.live_bytes;
    ++device.peaks;
  }
}

void StackTotals::finish() {
  for (auto &[place, totals] : places_) {
    keep_peak(place, totals);
  }
}

}  // namespace ration::logs

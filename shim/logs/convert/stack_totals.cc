#include "logs/convert/stack_totals.h"

namespace ration::logs {

void StackTotals::keep_peak(std::size_t device, Totals &totals) {
  const std::uint64_t peaks = devices_[device].peaks;
  if (totals.peak_ != peaks) {
    totals.at_peak_ = totals.live;
    totals.peak_ = peaks;
  }
}

void StackTotals::begin(Block &block) {
  Totals &totals = places_[{block.device, block.stack, blocks_.api_of(block), blocks_.kind_of(block)}];
  block.note = &totals;
  keep_peak(block.device, totals);
  for (Count *count : {&totals.total, &totals.live}) {
    ++count->blocks;
    count->bytes += block.bytes;
  }
  Device &device = devices_[block.device];
  device.live_bytes += block.bytes;
  if (device.live_bytes > device.peak_bytes) {
    device.peak_bytes = device.live_bytes;
    ++device.peaks;
  }
}

void StackTotals::end(const Block &block) {
  keep_peak(block.device, *block.note);
  --block.note->live.blocks;
  block.note->live.bytes -= block.bytes;
  devices_[block.device].live_bytes -= block.bytes;
}

void StackTotals::add(const Record &record) {
  stacks_.add(record);
  blocks_.add(record);
  if (const Block *ended = blocks_.ended(); ended != nullptr && ended->is_charged) {
    end(*ended);
  }
  if (Block *begun = blocks_.begun(); begun != nullptr && begun->is_charged) {
    begin(*begun);
  }
}

void StackTotals::finish() {
  for (auto &[place, totals] : places_) {
    keep_peak(place.device, totals);
  }
}

}  // namespace ration::logs

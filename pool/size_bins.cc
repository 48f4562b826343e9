#include "pool/size_bins.h"

#include <bit>

namespace ration::pool {

SizeBins::Bin SizeBins::bin_of(std::uint64_t units) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(units)) - 1;
  return {width - kSmallestShift, static_cast<unsigned>(units >> (width - kSecondBits)) & (kSecond - 1)};
}

std::uint32_t SizeBins::insert(std::uint32_t hole, std::uint64_t units) noexcept {
  if (!records_.prepare(1)) return 0;
  const std::uint32_t number = records_.take();
  records_.at(number) = {units, hole, 0, {0}};
  link(number);
  ++size_;
  return number;
}

void SizeBins::remove(std::uint32_t number) noexcept {
  unlink(number);
  records_.at(number).units = 0;
  records_.give(number);
  --size_;
}

void SizeBins::move(std::uint32_t number, std::uint64_t units) noexcept {
  unlink(number);
  records_.at(number).units = units;
  link(number);
}

void SizeBins::link(std::uint32_t number) noexcept {
  Record &record = records_.at(number);
  const Bin bin = bin_of(record.units);
  std::uint16_t &head = head_[bin.first][bin.second];
  record.previous = 0;
  record.next = head;
  if (head != 0) records_.at(head).previous = number;
  head = static_cast<std::uint16_t>(number);
  second_map_[bin.first] |= 1U << bin.second;
  first_map_ |= 1U << bin.first;
}

void SizeBins::unlink(std::uint32_t number) noexcept {
  const Record &record = records_.at(number);
  const Bin bin = bin_of(record.units);
  if (record.next != 0) records_.at(record.next).previous = record.previous;
  if (record.previous != 0) {
    records_.at(record.previous).next = record.next;
  } else if ((head_[bin.first][bin.second] = static_cast<std::uint16_t>(record.next)) == 0) {
    if ((second_map_[bin.first] &= ~(1U << bin.second)) == 0) first_map_ &= ~(1U << bin.first);
  }
}

std::optional<SizeBins::Bin> SizeBins::next_filled(Bin bin) const noexcept {
  // Shifts twice, because a single shift could be by 32, which is undefined.
  if (const std::uint32_t here = second_map_[bin.first] >> bin.second >> 1; here != 0) {
    return Bin{bin.first, bin.second + 1 + static_cast<unsigned>(std::countr_zero(here))};
  }
  const std::uint32_t above = first_map_ >> bin.first >> 1;
  if (above == 0) return std::nullopt;
  const unsigned first = bin.first + 1 + static_cast<unsigned>(std::countr_zero(above));
  return Bin{first, static_cast<unsigned>(std::countr_zero(second_map_[first]))};
}

const SizeBins::Record *SizeBins::best_in(Bin bin, std::uint64_t units) const noexcept {
  const Record *best = nullptr;
  std::uint32_t number = head_[bin.first][bin.second];
  for (unsigned looked = 0; number != 0 && looked < kScanned; ++looked) {
    const Record &record = records_.at(number);
    if (record.units >= units && (best == nullptr || record.units < best->units)) best = &record;
    number = record.next;
  }
  return best;
}

std::uint32_t SizeBins::find(std::uint64_t units) const noexcept {
  const Bin own = bin_of(units);
  if (own.first >= kFirst) return 0;
  if (const Record *best = best_in(own, units); best != nullptr) return best->hole;
  const std::optional<Bin> above = next_filled(own);
  return above ? best_in(*above, units)->hole : 0;
}

const SizeBins::Record *SizeBins::record(std::uint32_t number) const noexcept {
  return number == 0 || number > records_.capacity() || records_.at(number).units == 0 ? nullptr : &records_.at(number);
}

}  // namespace ration::pool

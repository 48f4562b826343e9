#include "pool/address_map.h"

#include <algorithm>
#include <utility>

#include "pool/host_array.h"

namespace ration::pool {

AddressMap::~AddressMap() {
  for (const Table &table : {table_, old_}) {
    if (table.count != 0) host_array::give(table.buckets, table.count * sizeof(Bucket), alignof(Bucket));
  }
}

// Searches beyond a full home bucket, and in the table whose nodes are being moved.
AddressMap::Place AddressMap::look_up_away(std::uint64_t unit) const noexcept {
  const std::uint64_t bits = mixed(unit);
  for (const Table &table : {table_, old_}) {
    if (table.buckets == nullptr) break;
    for (Bucket *at = table.home(bits);; at = table.next(at)) {
      if (const Place place = look_up_in(*at, unit, bits, kAway); place.node != 0) return place;
      if (at->overflows() == 0) break;
    }
  }
  return {};
}

// Grows by a quarter, so that the spare part stays small compared with the blocks. At a load of three quarters nearly
// every node lies in its home bucket.
bool AddressMap::grow(std::size_t blocks) noexcept {
  if (is_moving()) move_some();
  if (blocks <= capacity_of(table_.count)) return true;
  constexpr std::size_t kFirstBuckets = 8;
  std::size_t count = std::max(kFirstBuckets, table_.count + table_.count / 4);
  while (capacity_of(count) < blocks && count <= kMostBuckets) count += count / 4;
  if (count > kMostBuckets) return false;
  auto *fresh = static_cast<Bucket *>(host_array::take(count * sizeof(Bucket), alignof(Bucket)));
  if (fresh == nullptr) return false;
  // Does nothing if blocks come one at a time: the earlier move ends long before a quarter more of them exist.
  while (is_moving()) move_some();
  const Table old = std::exchange(table_, Table{fresh, count});
  room_ = capacity_of(count);
  if (size_ == 0) {
    if (old.count != 0) host_array::give(old.buckets, old.count * sizeof(Bucket), alignof(Bucket));
    return true;
  }
  old_ = old;
  moved_ = 0;
  room_ = 0;
  move_some();
  return true;
}

void AddressMap::move_some() noexcept {
  for (const std::size_t end = std::min(old_.count, moved_ + kMoved); moved_ < end; ++moved_) {
    Bucket &bucket = old_.buckets[moved_];
    for (std::uint32_t lane = 0; lane < kWays; ++lane) {
      if (bucket.tags[lane] == 0) continue;
      bucket.tags[lane] = 0;
      put(nodes_.at(bucket.node[lane]).unit(), bucket.node[lane]);
    }
  }
  if (moved_ < old_.count) return;
  const Table empty = std::exchange(old_, Table{});
  host_array::give(empty.buckets, empty.count * sizeof(Bucket), alignof(Bucket));
  room_ = capacity_of(table_.count);
}

// Overflow counts in the old table may stay too high, because moving a node does not lower them. That only costs a look
// into the next bucket.
void AddressMap::erase_away(const Place &place) noexcept {
  lanes::put_byte(place.bucket->tags.data(), place.lane - kAway, 0);
  const std::uint64_t bits = mixed(nodes_.at(place.node).unit());
  const bool is_old = place.bucket >= old_.buckets && place.bucket < old_.buckets + old_.count;
  const Table &table = is_old ? old_ : table_;
  for (Bucket *at = table.home(bits); at != place.bucket; at = table.next(at)) at->change_overflows(-1);
}

}  // namespace ration::pool

#include "pool/address_map.h"

#include <algorithm>
#include <new>
#include <utility>

namespace ration::pool {

AddressMap::~AddressMap() {
  operator delete (buckets_, std::align_val_t{alignof(Bucket)});
}

// Grows by a quarter, so that the spare part stays small beside the blocks. At a load of three quarters nearly every
// node lies in its home bucket.
bool AddressMap::grow(std::size_t blocks) noexcept {
  constexpr std::size_t kFirstBuckets = 8;
  std::size_t count = std::max(kFirstBuckets, bucket_count_ + bucket_count_ / 4);
  while (count * kWays * 3 / 4 < blocks) count += count / 4;
  const std::align_val_t alignment{alignof(Bucket)};
  auto *fresh = static_cast<Bucket *>(operator new(count * sizeof(Bucket), alignment, std::nothrow));
  if (fresh == nullptr) return false;
  for (std::size_t at = 0; at < count; ++at) new (fresh + at) Bucket{};
  Bucket *old = std::exchange(buckets_, fresh);
  const std::size_t old_count = std::exchange(bucket_count_, count);
  room_ = count * kWays * 3 / 4;
  size_ = 0;
  for (std::size_t at = 0; at < old_count; ++at) {
    for (std::uint32_t lane = 0; lane < kWays; ++lane) {
      if (old[at].tags[lane] != 0) insert(nodes_.at(old[at].node[lane]).granule(), old[at].node[lane]);
    }
  }
  operator delete(old, alignment);
  return true;
}

}  // namespace ration::pool

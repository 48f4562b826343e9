// Keeps items in one array of host memory, which never shrinks. An item's index has 32 bits, half the size of a
// pointer. Growth does not pause the caller: the array is enlarged in place or by moving page-table entries, and fresh
// items join the spare ones a batch at a time.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: all its items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "pool/host_array.h"

namespace ration::pool {

// An index counts units of kUnit bytes, up to kLargest: if kUnit is 8, the processor's addressing mode scales the
// index. REQUIRES of Item: trivial, with a member `std::uint32_t next_spare`, which the pool uses while the item is
// spare.
template <class Item, std::size_t kUnit = sizeof(Item), std::uint32_t kLargest = UINT32_MAX,
          std::size_t kLeastGrowth = 4>
class IndexedPool {
 public:
  IndexedPool() = default;
  IndexedPool(const IndexedPool &) = delete;
  IndexedPool &operator=(const IndexedPool &) = delete;
  ~IndexedPool() {
    if (items_ != nullptr) host_array::give(items_, host_bytes(), alignof(Item));
  }

  // True if the next `items` take() calls need no host memory. Once is_full() is true, the pool never gets more items.
  [[nodiscard]] bool has(std::size_t items) const noexcept { return spares_ >= items; }
  [[nodiscard]] bool is_full() const noexcept { return linked_ == capacity_ && capacity_ >= kLargest / kStep; }
  // Ensures that the next `items` take() calls need no host memory; false if host memory has run out. Items may move.
  [[nodiscard]] bool prepare(std::size_t items) noexcept { return has(items) || grow(items - spares_); }

  // REQUIRES: prepare() has succeeded. The item's content is unspecified. Its index is never 0.
  [[nodiscard]] std::uint32_t take() noexcept {
    --spares_;
    return std::exchange(spare_, at(spare_).next_spare);
  }

  void give(std::uint32_t index) noexcept {
    at(index).next_spare = std::exchange(spare_, index);
    ++spares_;
  }

  [[nodiscard]] Item &at(std::uint32_t index) const noexcept {
    return *reinterpret_cast<Item *>(origin_ + std::size_t{index} * kUnit);
  }
  // REQUIRES: `item` belongs to this pool.
  [[nodiscard]] std::uint32_t index_of(const Item &item) const noexcept {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(reinterpret_cast<const std::byte *>(&item) - origin_) /
                                      kUnit);
  }
  // The number of items so far, spare ones included.
  [[nodiscard]] std::size_t capacity() const noexcept { return linked_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return capacity_ * sizeof(Item); }

 private:
  static constexpr std::size_t kStep = sizeof(Item) / kUnit;
  static_assert(sizeof(Item) % kUnit == 0);
  static_assert(std::is_trivially_copyable_v<Item> && std::is_trivially_destructible_v<Item>);
  // This many fresh items join the spare ones at once, which takes some microseconds.
  static constexpr std::size_t kBatch = 1024;

  // Grows by a sixteenth, so that the spare part stays small compared with the used one.
  [[gnu::cold, gnu::noinline]] bool grow(std::size_t items_more) noexcept {
    if (items_more > capacity_ - linked_ && !enlarge(items_more - (capacity_ - linked_))) return false;
    const std::size_t from = linked_;
    linked_ = std::min(capacity_, from + std::max(items_more, kBatch));
    for (std::size_t number = linked_; number > from; --number) give(static_cast<std::uint32_t>(number * kStep));
    return true;
  }

  bool enlarge(std::size_t items_more) noexcept {
    const std::size_t had = capacity_;
    const std::size_t count =
        std::min<std::size_t>(kLargest / kStep, had + std::max({items_more, had / 16, kLeastGrowth}));
    if (count < had + items_more) return false;
    void *memory = host_array::enlarge(items_, host_bytes(), count * sizeof(Item), alignof(Item));
    if (memory == nullptr) return false;
    items_ = static_cast<std::byte *>(memory);
    origin_ = items_ - sizeof(Item);
    capacity_ = count;
    return true;
  }

  std::byte *origin_ = nullptr;  // one item below the first, so that index 0 needs no memory
  std::uint32_t spare_ = 0;
  std::size_t spares_ = 0;
  std::byte *items_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t linked_ = 0;  // items at the start of the array that have ever been spare or taken
};

}  // namespace ration::pool

// Items with numbers, side by side in memory of the host's that only grows; a number is half a pointer.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: all its items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ration::pool {

// The numbers go to kMost and count units of so many bytes: items, or eight bytes, which a processor multiplies by in
// the address itself. REQUIRES of Item: trivial, with a member `std::uint32_t next_spare` that is the stock's while the
// item is spare.
template <class Item, std::uint32_t kMost = UINT32_MAX, std::size_t kUnit = sizeof(Item)>
class NumberedStock {
 public:
  // Makes sure that the next `items` take() calls need nothing from the host; false when it has no more memory. Items
  // may move.
  [[nodiscard]] bool prepare(std::size_t items) noexcept { return spares_ >= items || grow(items - spares_); }

  // REQUIRES: prepare() has made sure of it. The item's content is anything. 0 is nobody's number.
  [[nodiscard]] std::uint32_t take() noexcept {
    --spares_;
    return std::exchange(spare_, at(spare_).next_spare);
  }

  void give(std::uint32_t number) noexcept {
    at(number).next_spare = std::exchange(spare_, number);
    ++spares_;
  }

  [[nodiscard]] Item &at(std::uint32_t number) const noexcept {
    return *reinterpret_cast<Item *>(reinterpret_cast<std::byte *>(items_.get()) + std::size_t{number} * kUnit);
  }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return count_ * sizeof(Item); }

 private:
  static constexpr std::size_t kStep = sizeof(Item) / kUnit;
  static_assert(sizeof(Item) % kUnit == 0);
  static_assert(std::is_trivially_copyable_v<Item> && std::is_trivially_destructible_v<Item>);
  struct Delete {
    void operator()(Item *items) const noexcept { operator delete (items, std::align_val_t{alignof(Item)}); }
  };

  // By a sixteenth, so that what is spare stays small beside what is used.
  [[gnu::cold, gnu::noinline]] bool grow(std::size_t items) noexcept {
    constexpr std::size_t kMostItems = kMost / kStep + 1;
    const std::size_t had = std::max(count_, std::size_t{1});  // number 0 is there from the beginning
    const std::size_t count = std::min(kMostItems, had + std::max({items, count_ / 16, std::size_t{4}}));
    if (count < had + items) return false;
    void *memory = operator new (count * sizeof(Item), std::align_val_t{alignof(Item)}, std::nothrow);
    if (memory == nullptr) return false;
    if (count_ != 0) std::memcpy(memory, items_.get(), count_ * sizeof(Item));
    items_.reset(static_cast<Item *>(memory));
    for (std::size_t index = count; index-- > had;) {
      give(static_cast<std::uint32_t>(index * kStep));
    }
    count_ = count;
    return true;
  }

  std::unique_ptr<Item, Delete> items_;
  std::size_t count_ = 0;
  std::uint32_t spare_ = 0;
  std::size_t spares_ = 0;
};

}  // namespace ration::pool

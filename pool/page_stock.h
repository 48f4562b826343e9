// Pages of one kind, obtained from the host a few at a time and kept until the end.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: all its pages.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace ration::pool {

// REQUIRES of Page: trivial, and at least as large as a pointer.
template <class Page, std::size_t kPagesAtOnce>
class PageStock {
 public:
  PageStock() = default;
  PageStock(const PageStock &) = delete;
  PageStock &operator=(const PageStock &) = delete;
  ~PageStock() {
    while (chunks_ != nullptr) delete std::exchange(chunks_, chunks_->next);
  }

  // Makes sure that the next `pages` take() calls need nothing from the host; false when the host has no more memory.
  [[nodiscard]] bool prepare(std::size_t pages) noexcept {
    while (spares_ < pages) {
      auto *chunk = new (std::nothrow) Chunk;
      if (chunk == nullptr) return false;
      chunk->next = std::exchange(chunks_, chunk);
      for (Slot &slot : chunk->slots) give(&slot.page);
      host_bytes_ += sizeof(Chunk);
    }
    return true;
  }

  // REQUIRES: prepare() has made sure of it. The page's content is anything.
  [[nodiscard]] Page *take() noexcept {
    Slot *slot = std::exchange(spare_, spare_->next);
    --spares_;
    return new (&slot->page) Page;
  }

  void give(Page *page) noexcept {
    Slot *slot = reinterpret_cast<Slot *>(page);  // a union and its member share their address
    slot->next = std::exchange(spare_, slot);
    ++spares_;
  }

  [[nodiscard]] std::size_t host_bytes() const noexcept { return host_bytes_; }

 private:
  union Slot {
    Page page;
    Slot *next;
  };
  struct Chunk {
    Chunk *next;
    std::array<Slot, kPagesAtOnce> slots;
  };

  Chunk *chunks_ = nullptr;
  Slot *spare_ = nullptr;
  std::size_t spares_ = 0;
  std::size_t host_bytes_ = 0;
};

}  // namespace ration::pool

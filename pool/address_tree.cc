#include "pool/address_tree.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace ration::pool {
namespace {

constexpr std::uint32_t kSparse = AddressTree::kSlots / 4;
constexpr std::uint32_t kJoined = AddressTree::kSlots * 3 / 4;  // leaves room: the next insertion must not split again

// The last slot that starts at or below `address`, 0 when none does. Without a branch on the keys: they are random.
std::uint32_t slot_of(const AddressTree::Page &page, Address address) {
  std::uint32_t base = 0;
  for (std::uint32_t left = page.count; left > 1;) {
    const std::uint32_t half = left / 2;
    base += page.address[base + half] <= address ? half : 0;
    left -= half;
  }
  return base;
}

constexpr std::uint32_t bits_below(std::uint32_t slot) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << slot) - 1);
}

std::uint32_t lowest_bit(std::uint32_t bits) {
  return static_cast<std::uint32_t>(std::countr_zero(bits));
}
std::uint32_t highest_bit(std::uint32_t bits) {
  return 31U - static_cast<std::uint32_t>(std::countl_zero(bits));
}

}  // namespace

struct AddressTree::Chunk {
  static constexpr std::size_t kPages = 16;
  Chunk *next;
  std::array<Page, kPages> pages;
};

AddressTree::Position &AddressTree::Position::operator=(const Position &other) {
  depth_ = other.depth_;
  std::copy_n(other.page_.begin(), depth_ + 1, page_.begin());
  std::copy_n(other.slot_.begin(), depth_ + 1, slot_.begin());
  return *this;
}

AddressTree::~AddressTree() {
  while (chunks_ != nullptr) delete std::exchange(chunks_, chunks_->next);
}

bool AddressTree::stock(std::size_t spares) {
  while (spares_ < spares) {
    auto *chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) return false;
    chunk->next = std::exchange(chunks_, chunk);
    for (Page &page : chunk->pages) give_page(&page);
    host_bytes_ += sizeof(Chunk);
  }
  return true;
}

// Each insertion may split every level and add a root, so the tree may even grow on the way.
bool AddressTree::prepare_insert(std::uint32_t insertions) {
  return stock(std::size_t{insertions} * (height_ + insertions + 1));
}

// Pages are half full at worst after a split; the levels above the leaves add one page in sixteen.
bool AddressTree::reserve(std::size_t entries) {
  return stock(entries / (kSlots / 2) * 17 / 16 + kMaximumHeight);
}

AddressTree::Page *AddressTree::take_page() {
  Page *page = spare_;
  spare_ = page->link[0].page;
  --spares_;
  page->count = 0;
  page->holes = 0;
  return page;
}

void AddressTree::give_page(Page *page) {
  page->link[0].page = std::exchange(spare_, page);
  ++spares_;
}

std::uint64_t AddressTree::largest_in(const Page &page) {
  std::uint64_t largest = 0;
  for (std::uint32_t left = page.holes; left != 0; left &= left - 1) {
    largest = std::max(largest, page.granules[lowest_bit(left)]);
  }
  return largest;
}

std::uint64_t AddressTree::largest_hole() const {
  return root_ == nullptr ? 0 : largest_in(*root_);
}

// --- moving about ---

bool AddressTree::find(Address address, Position &position) const {
  if (root_ == nullptr) return false;
  Page *page = root_;
  for (std::uint32_t level = 0;; ++level) {
    const std::uint32_t slot = slot_of(*page, address);
    position.page_[level] = page;
    position.slot_[level] = slot;
    position.depth_ = level;
    if (level + 1 == height_) return page->address[slot] <= address;
    page = page->link[slot].page;
  }
}

bool AddressTree::find_lowest_hole(std::uint64_t granules, Position &position) const {
  Page *page = root_;
  for (std::uint32_t level = 0; level < height_; ++level) {
    if (level != 0) page = page->link[position.slot_[level - 1]].page;
    std::uint32_t left = page->holes;
    while (left != 0 && page->granules[lowest_bit(left)] < granules) left &= left - 1;
    if (left == 0) return false;  // only in the root: below it the maxima have promised one
    position.page_[level] = page;
    position.slot_[level] = lowest_bit(left);
    position.depth_ = level;
  }
  return height_ != 0;
}

bool AddressTree::find_highest_hole(std::uint64_t granules, Position &position) const {
  Page *page = root_;
  for (std::uint32_t level = 0; level < height_; ++level) {
    if (level != 0) page = page->link[position.slot_[level - 1]].page;
    std::uint32_t left = page->holes;
    while (left != 0 && page->granules[highest_bit(left)] < granules) left ^= std::uint32_t{1} << highest_bit(left);
    if (left == 0) return false;
    position.page_[level] = page;
    position.slot_[level] = highest_bit(left);
    position.depth_ = level;
  }
  return height_ != 0;
}

bool AddressTree::first(Position &position) const {
  find(0, position);
  return root_ != nullptr;
}

bool AddressTree::next(Position &position) const {
  std::uint32_t level = position.depth_;
  while (position.slot_[level] + 1 == position.page_[level]->count) {
    if (level-- == 0) return false;
  }
  ++position.slot_[level];
  for (; level < position.depth_; ++level) {
    position.page_[level + 1] = position.page_[level]->link[position.slot_[level]].page;
    position.slot_[level + 1] = 0;
  }
  return true;
}

bool AddressTree::previous(Position &position) const {
  std::uint32_t level = position.depth_;
  while (position.slot_[level] == 0) {
    if (level-- == 0) return false;
  }
  --position.slot_[level];
  for (; level < position.depth_; ++level) {
    position.page_[level + 1] = position.page_[level]->link[position.slot_[level]].page;
    position.slot_[level + 1] = position.page_[level + 1]->count - 1;
  }
  return true;
}

// --- changing ---

// Carries a changed hole size in the page at `level` up to the root, as far as it changes a maximum.
void AddressTree::lift(const Position &position, std::uint32_t level, std::uint64_t was, std::uint64_t now) {
  for (; level > 0; --level) {
    std::uint64_t &largest = position.page_[level - 1]->granules[position.slot_[level - 1]];
    const std::uint64_t before = largest;
    if (now >= before) {
      largest = now;
    } else if (was == before) {
      largest = now = largest_in(*position.page_[level]);
    } else {
      return;
    }
    if (largest == before) return;
    was = before;
  }
}

// The page at `level` has a new first entry: whoever stands for it above must start there too.
void AddressTree::follow_first(const Position &position, std::uint32_t level) {
  for (; level > 0; --level) {
    const std::uint32_t slot = position.slot_[level - 1];
    position.page_[level - 1]->address[slot] = position.page_[level]->address[0];
    if (slot != 0) return;
  }
}

void AddressTree::shift_in(Page &page, std::uint32_t slot, Address address, std::uint64_t granules, Page::Link link,
                           bool hole) {
  std::copy_backward(&page.address[slot], &page.address[page.count], &page.address[page.count] + 1);
  std::copy_backward(&page.granules[slot], &page.granules[page.count], &page.granules[page.count] + 1);
  std::copy_backward(&page.link[slot], &page.link[page.count], &page.link[page.count] + 1);
  page.address[slot] = address;
  page.granules[slot] = granules;
  page.link[slot] = link;
  const std::uint32_t below = page.holes & bits_below(slot);
  page.holes = below | (page.holes ^ below) << 1 | std::uint32_t{hole} << slot;
  ++page.count;
}

void AddressTree::shift_out(Page &page, std::uint32_t slot) {
  std::copy(&page.address[slot] + 1, page.address.data() + page.count, &page.address[slot]);
  std::copy(&page.granules[slot] + 1, page.granules.data() + page.count, &page.granules[slot]);
  std::copy(&page.link[slot] + 1, page.link.data() + page.count, &page.link[slot]);
  const std::uint32_t below = page.holes & bits_below(slot);
  page.holes = below | (page.holes >> 1 & ~bits_below(slot));
  --page.count;
}

void AddressTree::append(Page &to, const Page &from, std::uint32_t first_slot) {
  const std::uint32_t moved = from.count - first_slot;
  std::copy_n(from.address.data() + first_slot, moved, to.address.data() + to.count);
  std::copy_n(from.granules.data() + first_slot, moved, to.granules.data() + to.count);
  std::copy_n(from.link.data() + first_slot, moved, to.link.data() + to.count);
  to.holes |= from.holes >> first_slot << to.count;
  to.count += moved;
}

// REQUIRES: the parent is not full.
void AddressTree::split_child(Page &parent, std::uint32_t slot) {
  Page &child = *parent.link[slot].page;
  Page *upper = take_page();
  append(*upper, child, kSlots / 2);
  child.count = kSlots / 2;
  child.holes &= bits_below(kSlots / 2);
  parent.granules[slot] = largest_in(child);
  shift_in(parent, slot + 1, upper->address[0], largest_in(*upper), {.page = upper}, true);
}

// Splits every full page from the root down, so that the parent of each has room when its turn comes.
void AddressTree::split_way_to(Address address) {
  if (root_->count == kSlots) {
    Page *above = take_page();
    shift_in(*above, 0, root_->address[0], largest_in(*root_), {.page = root_}, true);
    root_ = above;
    ++height_;
  }
  Page *page = root_;
  for (std::uint32_t level = 0; level + 1 < height_; ++level) {
    std::uint32_t slot = slot_of(*page, address);
    if (page->link[slot].page->count == kSlots) {
      split_child(*page, slot);
      slot = slot_of(*page, address);
    }
    page = page->link[slot].page;
  }
}

void AddressTree::insert(Address address, std::uint64_t granules, bool hole) {
  if (root_ == nullptr) {
    root_ = take_page();
    height_ = 1;
  } else if (Position before; find(address, before)) {
    insert_after(before, address, granules, hole);
    return;
  } else if (before.leaf().count == kSlots) {
    split_way_to(address);
  }
  Position position;
  position.page_[0] = root_;
  position.slot_[0] = 0;
  if (root_->count != 0) find(address, position);
  shift_in(position.leaf(), 0, address, granules, {.mark = 0}, hole);
  follow_first(position, position.depth_);
  if (hole) lift(position, position.depth_, 0, granules);
}

void AddressTree::insert_after(Position &position, Address address, std::uint64_t granules, bool hole) {
  if (position.leaf().count == kSlots) {
    const Address before = position.address();
    split_way_to(before);
    find(before, position);
  }
  shift_in(position.leaf(), position.slot() + 1, address, granules, {.mark = 0}, hole);
  if (hole) lift(position, position.depth_, 0, granules);
}

void AddressTree::set(Position &position, std::uint64_t granules, bool hole) {
  Page &leaf = position.leaf();
  const std::uint32_t slot = position.slot();
  const std::uint64_t was = position.is_hole() ? leaf.granules[slot] : 0;
  leaf.granules[slot] = granules;
  leaf.holes = (leaf.holes & ~(std::uint32_t{1} << slot)) | std::uint32_t{hole} << slot;
  const std::uint64_t now = hole ? granules : 0;
  if (was != now) lift(position, position.depth_, was, now);
}

void AddressTree::erase(const Position &position) {
  remove_slot(position, position.depth_, position.is_hole() ? position.granules() : 0);
}

void AddressTree::remove_slot(const Position &position, std::uint32_t level, std::uint64_t was) {
  Page *page = position.page_[level];
  shift_out(*page, position.slot_[level]);
  if (page->count == 0) {
    give_page(page);
    if (level != 0) {
      Page *above = position.page_[level - 1];
      remove_slot(position, level - 1, above->granules[position.slot_[level - 1]]);
    } else {
      root_ = nullptr;
      height_ = 0;
    }
    return;
  }
  if (position.slot_[level] == 0) follow_first(position, level);
  if (was != 0) lift(position, level, was, 0);
}

bool AddressTree::is_sparse(const Position &position) const {
  return position.leaf().count <= kSparse && height_ > 1;
}

void AddressTree::join(Page &parent, std::uint32_t slot) {
  Page &lower = *parent.link[slot].page;
  Page *upper = parent.link[slot + 1].page;
  append(lower, *upper, 0);
  parent.granules[slot] = std::max(parent.granules[slot], parent.granules[slot + 1]);
  shift_out(parent, slot + 1);
  give_page(upper);
}

void AddressTree::tidy(Address address) {
  Position position;
  if (root_ == nullptr) return;
  find(address, position);
  for (std::uint32_t level = position.depth_; level > 0; --level) {
    Page &parent = *position.page_[level - 1];
    const std::uint32_t slot = position.slot_[level - 1];
    const std::uint32_t count = position.page_[level]->count;
    if (count > kSparse) break;
    if (slot + 1 < parent.count && count + parent.link[slot + 1].page->count <= kJoined) {
      join(parent, slot);
    } else if (slot != 0 && count + parent.link[slot - 1].page->count <= kJoined) {
      join(parent, slot - 1);
    } else {
      break;
    }
  }
  while (height_ > 1 && root_->count == 1) {
    give_page(std::exchange(root_, root_->link[0].page));
    --height_;
  }
}

}  // namespace ration::pool

#include "pool/address_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ration::pool {
namespace {

constexpr std::uint32_t kSparse = AddressTree::kSlots * 3 / 8;
constexpr std::uint32_t kJoined =
    AddressTree::kSlots * 13 / 16;  // leaves room: the next insertion must not split again

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

AddressTree::Position &AddressTree::Position::operator=(const Position &other) {
  depth_ = other.depth_;
  std::copy_n(other.page_.begin(), depth_ + 1, page_.begin());
  std::copy_n(other.slot_.begin(), depth_ + 1, slot_.begin());
  return *this;
}

// Each insertion may split every level and add a root, so the tree may even grow on the way.
bool AddressTree::prepare_insert(std::uint32_t insertions) {
  return leaves_.prepare(insertions) && inners_.prepare(std::size_t{insertions} * (height_ + insertions));
}

// Pages are half full at worst after a split.
bool AddressTree::reserve(std::size_t entries) {
  const std::size_t leaves = entries / (kSlots / 2) + 2;
  return leaves_.prepare(leaves) && inners_.prepare(leaves / (kSlots / 2 - 1) + 3);
}

void AddressTree::give_page(Page *page, bool leaf) {
  if (leaf) {
    leaves_.give(page);
  } else {
    inners_.give(&inner(*page));
  }
}

// As a word, without a mark.
std::uint64_t AddressTree::largest_in(const Page &page) {
  std::uint64_t largest = 0;
  for (std::uint32_t left = page.holes; left != 0; left &= left - 1) {
    largest = std::max(largest, page.word[lowest_bit(left)]);
  }
  return largest & ~kMarkMask;
}

std::uint64_t AddressTree::largest_hole() const {
  return root_ == nullptr ? 0 : largest_in(*root_) >> kMarkBits;
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
    if (is_leaf(level)) return page->address[slot] <= address;
    page = inner(*page).child[slot];
  }
}

bool AddressTree::find_lowest_hole(std::uint64_t granules, Position &position) const {
  const std::uint64_t word = granules << kMarkBits;
  Page *page = root_;
  for (std::uint32_t level = 0; level < height_; ++level) {
    if (level != 0) page = inner(*page).child[position.slot_[level - 1]];
    std::uint32_t left = page->holes;
    while (left != 0 && page->word[lowest_bit(left)] < word) left &= left - 1;
    if (left == 0) return false;  // only in the root: below it the maxima have promised one
    position.page_[level] = page;
    position.slot_[level] = lowest_bit(left);
    position.depth_ = level;
  }
  return height_ != 0;
}

bool AddressTree::find_highest_hole(std::uint64_t granules, Position &position) const {
  const std::uint64_t word = granules << kMarkBits;
  Page *page = root_;
  for (std::uint32_t level = 0; level < height_; ++level) {
    if (level != 0) page = inner(*page).child[position.slot_[level - 1]];
    std::uint32_t left = page->holes;
    while (left != 0 && page->word[highest_bit(left)] < word) left ^= std::uint32_t{1} << highest_bit(left);
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
    position.page_[level + 1] = inner(*position.page_[level]).child[position.slot_[level]];
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
    position.page_[level + 1] = inner(*position.page_[level]).child[position.slot_[level]];
    position.slot_[level + 1] = position.page_[level + 1]->count - 1;
  }
  return true;
}

// --- changing ---

// Carries a changed hole, as a word without its mark, in the page at `level` up to the root, as far as it changes a
// maximum.
void AddressTree::lift(const Position &position, std::uint32_t level, std::uint64_t was, std::uint64_t now) {
  for (; level > 0; --level) {
    std::uint64_t &largest = position.page_[level - 1]->word[position.slot_[level - 1]];
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

void AddressTree::shift_in(Page &page, std::uint32_t slot, Address address, std::uint64_t word, bool hole) {
  std::copy_backward(&page.address[slot], page.address.data() + page.count, page.address.data() + page.count + 1);
  std::copy_backward(&page.word[slot], page.word.data() + page.count, page.word.data() + page.count + 1);
  page.address[slot] = address;
  page.word[slot] = word;
  const std::uint32_t below = page.holes & bits_below(slot);
  page.holes = below | (page.holes ^ below) << 1 | std::uint32_t{hole} << slot;
  ++page.count;
}

void AddressTree::shift_in_child(InnerPage &page, std::uint32_t slot, Page &child) {
  std::copy_backward(&page.child[slot], page.child.data() + page.count, page.child.data() + page.count + 1);
  page.child[slot] = &child;
  shift_in(page, slot, child.address[0], largest_in(child), true);
}

void AddressTree::shift_out(Page &page, std::uint32_t slot, bool leaf) {
  std::copy(&page.address[slot] + 1, page.address.data() + page.count, &page.address[slot]);
  std::copy(&page.word[slot] + 1, page.word.data() + page.count, &page.word[slot]);
  if (!leaf) std::copy(&inner(page).child[slot] + 1, inner(page).child.data() + page.count, &inner(page).child[slot]);
  page.holes = (page.holes & bits_below(slot)) | (page.holes >> 1 & ~bits_below(slot));
  --page.count;
}

void AddressTree::append(Page &to, const Page &from, std::uint32_t first_slot, bool leaf) {
  const std::uint32_t moved = from.count - first_slot;
  std::copy_n(from.address.data() + first_slot, moved, to.address.data() + to.count);
  std::copy_n(from.word.data() + first_slot, moved, to.word.data() + to.count);
  if (!leaf) std::copy_n(inner(from).child.data() + first_slot, moved, inner(to).child.data() + to.count);
  to.holes |= from.holes >> first_slot << to.count;
  to.count += moved;
}

// REQUIRES: the parent is not full.
void AddressTree::split_child(InnerPage &parent, std::uint32_t slot, bool leaf) {
  Page &lower = *parent.child[slot];
  Page &upper = leaf ? *leaves_.take() : *inners_.take();
  upper.count = 0;
  upper.holes = 0;
  append(upper, lower, kSlots / 2, leaf);
  lower.count = kSlots / 2;
  lower.holes &= bits_below(kSlots / 2);
  parent.word[slot] = largest_in(lower);
  shift_in_child(parent, slot + 1, upper);
}

// Splits every full page from the root down, so that the parent of each has room when its turn comes.
void AddressTree::split_way_to(Address address) {
  if (root_->count == kSlots) {
    InnerPage *above = inners_.take();
    above->count = 0;
    above->holes = 0;
    shift_in_child(*above, 0, *root_);
    root_ = above;
    ++height_;
  }
  Page *page = root_;
  for (std::uint32_t level = 0; !is_leaf(level); ++level) {
    std::uint32_t slot = slot_of(*page, address);
    if (inner(*page).child[slot]->count == kSlots) {
      split_child(inner(*page), slot, is_leaf(level + 1));
      slot = slot_of(*page, address);
    }
    page = inner(*page).child[slot];
  }
}

void AddressTree::insert(Address address, std::uint64_t granules, bool hole) {
  if (root_ == nullptr) {
    root_ = leaves_.take();
    root_->count = 0;
    root_->holes = 0;
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
  shift_in(position.leaf(), 0, address, granules << kMarkBits, hole);
  follow_first(position, position.depth_);
  if (hole) lift(position, position.depth_, 0, granules << kMarkBits);
}

void AddressTree::insert_after(Position &position, Address address, std::uint64_t granules, bool hole,
                               std::uint32_t mark) {
  if (position.leaf().count == kSlots) {
    const Address before = position.address();
    split_way_to(before);
    find(before, position);
  }
  shift_in(position.leaf(), position.slot() + 1, address, granules << kMarkBits | mark, hole);
  if (hole) lift(position, position.depth_, 0, granules << kMarkBits);
}

void AddressTree::set(Position &position, std::uint64_t granules, bool hole) {
  Page &leaf = position.leaf();
  const std::uint32_t slot = position.slot();
  const std::uint64_t was = position.is_hole() ? leaf.word[slot] & ~kMarkMask : 0;
  leaf.word[slot] = granules << kMarkBits | (leaf.word[slot] & kMarkMask);
  leaf.holes = (leaf.holes & ~(std::uint32_t{1} << slot)) | std::uint32_t{hole} << slot;
  const std::uint64_t now = hole ? granules << kMarkBits : 0;
  if (was != now) lift(position, position.depth_, was, now);
}

void AddressTree::erase(const Position &position) {
  remove_slot(position, position.depth_, position.is_hole() ? position.granules() << kMarkBits : 0);
}

void AddressTree::remove_slot(const Position &position, std::uint32_t level, std::uint64_t was) {
  Page *page = position.page_[level];
  shift_out(*page, position.slot_[level], is_leaf(level));
  if (page->count == 0) {
    give_page(page, is_leaf(level));
    if (level != 0) {
      remove_slot(position, level - 1, position.page_[level - 1]->word[position.slot_[level - 1]]);
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

void AddressTree::join(InnerPage &parent, std::uint32_t slot, bool leaf) {
  Page *upper = parent.child[slot + 1];
  append(*parent.child[slot], *upper, 0, leaf);
  parent.word[slot] = std::max(parent.word[slot], parent.word[slot + 1]);
  shift_out(parent, slot + 1, false);
  give_page(upper, leaf);
}

void AddressTree::tidy(Address address) {
  Position position;
  if (root_ == nullptr) return;
  find(address, position);
  for (std::uint32_t level = position.depth_; level > 0; --level) {
    InnerPage &parent = inner(*position.page_[level - 1]);
    const std::uint32_t slot = position.slot_[level - 1];
    const std::uint32_t count = position.page_[level]->count;
    if (count > kSparse) break;
    if (slot + 1 < parent.count && count + parent.child[slot + 1]->count <= kJoined) {
      join(parent, slot, is_leaf(level));
    } else if (slot != 0 && count + parent.child[slot - 1]->count <= kJoined) {
      join(parent, slot - 1, is_leaf(level));
    } else {
      break;
    }
  }
  while (height_ > 1 && root_->count == 1) {
    Page *lone = root_;
    root_ = inner(*lone).child[0];
    give_page(lone, false);
    --height_;
  }
}

}  // namespace ration::pool

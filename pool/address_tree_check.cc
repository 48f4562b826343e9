// The tree's own invariants, for tests and debugging: order, maxima, separators, page counts.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <string>

#include "pool/address_tree.h"

namespace ration::pool {

std::string AddressTree::check() const {
  if (root_ == nullptr) return height_ == 0 ? "" : "an empty tree has a height";
  return check_page(*root_, 0);
}

std::string AddressTree::check_page(const Page &page, std::uint32_t level) const {
  const auto wrong = [&](const char *what) {
    return "the page at level " + std::to_string(level) + " from " + std::to_string(page.address[0]) + " " + what;
  };
  if (page.count == 0 || page.count > kSlots) return wrong("has an impossible count");
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << page.count) - 1);
  if (is_leaf(level) ? (page.holes & ~all) != 0 : page.holes != all) return wrong("has wrong hole bits");
  for (std::uint32_t slot = 0; slot < page.count; ++slot) {
    if (slot != 0 && page.address[slot] <= page.address[slot - 1]) return wrong("is out of order");
    if (is_leaf(level)) continue;
    const Page &below = *inner(page).child[slot];
    if (below.address[0] != page.address[slot]) return wrong("has a wrong separator");
    if (slot + 1 < page.count && below.address[below.count - 1] >= page.address[slot + 1]) {
      return wrong("overlaps its neighbour");
    }
    if (largest_in(below) != page.word[slot]) return wrong("has a wrong largest hole");
    if (std::string deeper = check_page(below, level + 1); !deeper.empty()) return deeper;
  }
  return "";
}

}  // namespace ration::pool

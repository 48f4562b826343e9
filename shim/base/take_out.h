// Moves the items for which `which` returns true to a new list, in the same order. Needs no host memory.
#pragma once

#include <iterator>
#include <list>

namespace ration {

template <class Item, class Which>
std::list<Item> take_out(std::list<Item> &from, const Which &which) {
  std::list<Item> taken;
  for (auto each = from.begin(); each != from.end();) {
    const auto next = std::next(each);
    if (which(*each)) {
      taken.splice(taken.end(), from, each);
    }
    each = next;
  }
  return taken;
}

}  // namespace ration

// The invariants of the bins: bits, links and the order of sizes. Threads: the caller locks.
#include <string>

#include "pool/size_bins.h"

namespace ration::pool {

std::string SizeBins::check() const {
  std::size_t listed = 0;
  for (unsigned first = 0; first < kFirst; ++first) {
    if ((second_map_[first] != 0) != ((first_map_ >> first & 1U) != 0)) return "a first-level bit is wrong";
    for (unsigned second = 0; second < kSecond; ++second) {
      std::uint32_t number = head_[first][second];
      if ((number != 0) != ((second_map_[first] >> second & 1U) != 0)) return "a second-level bit is wrong";
      for (std::uint32_t before = 0; number != 0; number = records_.at(number).next) {
        const Record &at = records_.at(number);
        if (at.units < kSmallestUnits) return "a spare record is listed";
        const Bin bin = bin_of(at.units);
        if (bin.first != first || bin.second != second) return "a large hole is in the wrong bin";
        if (at.previous != before) return "a bin's back link is wrong";
        before = number;
        if (++listed > size_) return "a bin has a cycle";
      }
    }
  }
  return listed == size_ ? "" : "the number of large holes is miscounted";
}

}  // namespace ration::pool

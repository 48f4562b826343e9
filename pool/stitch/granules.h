// The granules of a pool: physical memory in handles, each of one or more of the device's pages, and the stock of those
// that hold nothing.
// Layer: pool, a leaf (standard library only: no CUDA). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "pool/unit.h"

namespace ration::pool::stitch {

using GranuleId = std::uint32_t;  // 0: none

struct Granule {
  enum class State : std::uint8_t {
    absent,   // no such handle (any more)
    home,     // its place in the home range belongs to the pool
    stock,    // holds nothing
    view,     // in the view of a block
    transit,  // a plan in execution has it
  };
  std::uint64_t handle = 0;
  std::uint64_t pages = 0;
  Address home = 0;   // where it is mapped in the home range; 0: nowhere
  bool bare = false;  // there without access: the driver refused that, and to take the mapping away
  State state = State::absent;
  std::vector<Address> views;  // that map it, live or not, by their block
};

class Granules {
 public:
  using Stock = std::set<std::pair<std::uint64_t, GranuleId>>;  // by pages

  Granules() : table_(1), nodes_(1) {}

  // Throws std::bad_alloc.
  GranuleId add(std::uint64_t pages);
  void remove(GranuleId id);
  // REQUIRES: in transit, and made of nothing yet.
  void resize(GranuleId id, std::uint64_t pages);
  Granule &at(GranuleId id) { return table_[id]; }
  [[nodiscard]] const Granule &at(GranuleId id) const { return table_[id]; }
  // Of those that exist, in transit or not.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // One above the ids so far.
  [[nodiscard]] GranuleId end() const { return static_cast<GranuleId>(table_.size()); }

  template <class Visit>
  void each(Visit visit) const {
    for (GranuleId id = 1; id < table_.size(); ++id) {
      if (table_[id].state != Granule::State::absent) visit(id, table_[id]);
    }
  }

  // REQUIRES: not in the stock. Needs no host memory.
  void put(GranuleId id);
  // REQUIRES: in the stock; it is in transit afterwards.
  void take(GranuleId id);
  [[nodiscard]] std::uint64_t stock_pages() const { return stock_pages_; }
  // The stocked granule with the most pages that are at most `pages`, or 0.
  [[nodiscard]] GranuleId largest_within(std::uint64_t pages) const;
  // The one with the fewest pages that are more than `pages`, or 0.
  [[nodiscard]] GranuleId smallest_above(std::uint64_t pages) const;
  [[nodiscard]] const Stock &stock() const { return stock_; }

 private:
  std::vector<Granule> table_;
  std::vector<Stock::node_type> nodes_;  // of those that are not in the stock
  std::vector<GranuleId> spare_;
  Stock stock_;
  std::uint64_t stock_pages_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace ration::pool::stitch

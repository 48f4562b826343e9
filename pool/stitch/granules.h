// The granules of a pool: physical memory in handles, each of one or more of the device's pages. The stock is the set
// of empty granules.
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
    absent,   // there is no such handle, or it was released
    home,     // its place in the home range is part of the pool
    stock,    // empty
    view,     // part of the view of a block
    transit,  // taken by a plan that is not finished
  };
  std::uint64_t handle = 0;
  std::uint64_t pages = 0;
  Address home = 0;   // its address in the home range; 0: not mapped there
  bool bare = false;  // mapped at `home` without access: the driver refused both access and unmapping
  State state = State::absent;
  std::vector<Address> views;  // the views that map it, live or not, by the addresses of their blocks
};

class Granules {
 public:
  using Stock = std::set<std::pair<std::uint64_t, GranuleId>>;  // ordered by pages

  Granules() : table_(1), nodes_(1) {}

  // Adds a granule, in transit. Throws std::bad_alloc.
  GranuleId add(std::uint64_t pages);
  void remove(GranuleId id);
  // REQUIRES: the granule is in transit and has no handle yet.
  void resize(GranuleId id, std::uint64_t pages);
  Granule &at(GranuleId id) { return table_[id]; }
  [[nodiscard]] const Granule &at(GranuleId id) const { return table_[id]; }
  // The number of granules that exist, in transit or not.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // One above the highest id so far.
  [[nodiscard]] GranuleId end() const { return static_cast<GranuleId>(table_.size()); }

  template <class Visit>
  void each(Visit visit) const {
    for (GranuleId id = 1; id < table_.size(); ++id) {
      if (table_[id].state != Granule::State::absent) visit(id, table_[id]);
    }
  }

  // Puts a granule into the stock. REQUIRES: the granule is not in the stock. Needs no host memory.
  void put(GranuleId id);
  // Takes a granule out of the stock and into transit. REQUIRES: the granule is in the stock.
  void take(GranuleId id);
  [[nodiscard]] std::uint64_t stock_pages() const { return stock_pages_; }
  // The largest granule in the stock with at most `pages` pages; 0: there is none.
  [[nodiscard]] GranuleId largest_within(std::uint64_t pages) const;
  // The smallest granule in the stock with more than `pages` pages; 0: there is none.
  [[nodiscard]] GranuleId smallest_above(std::uint64_t pages) const;
  [[nodiscard]] const Stock &stock() const { return stock_; }

 private:
  std::vector<Granule> table_;
  std::vector<Stock::node_type> nodes_;  // spare set nodes, for the granules outside the stock
  std::vector<GranuleId> spare_;
  Stock stock_;
  std::uint64_t stock_pages_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace ration::pool::stitch

// The views of a pool: address ranges in which granules from anywhere are mapped side by side, one for each stitched
// block. A view outlives its block: the next block of the same size uses it again if its granules are still free.
// Layer: pool, a leaf (standard library only: no CUDA). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pool/stitch/granules.h"
#include "pool/unit.h"

namespace ration::pool::stitch {

// Part of the home range that serves as one end of a view.
struct Piece {
  Address address = 0;  // in the home range
  std::uint64_t bytes = 0;
};

struct View {
  using ByBytes = std::multimap<std::uint64_t, Address>;
  using ByUse = std::map<std::uint64_t, Address>;

  enum class State : std::uint8_t {
    mapping,  // an unfinished plan maps it or drops it
    live,
    retired,
    resting,  // keeps its granules for the next block of its size
    dormant,  // its granules are free or used elsewhere
  };
  Address address = 0;          // start of the block
  std::uint64_t bytes = 0;      // size of the block, in whole units; 0: a dormant view that fits no block
  std::uint64_t requested = 0;  // the size that the program asked for
  Address range = 0;            // start of the address range, which has whole pages
  std::uint64_t range_bytes = 0;
  std::vector<GranuleId> granules;  // in order; if there is a head, the first one is from the home range; if there is a
                                    // tail, the last one is
  Piece head;
  Piece tail;
  State state = State::mapping;
  bool marked = false;
  std::uint64_t name = 0;
  std::uint64_t used = 0;  // when its block last left it, as the value of a counter
  // Spare nodes for the two indexes of unused views, while this view is not in them.
  ByBytes::node_type by_bytes;
  ByUse::node_type by_use;
};

class Views {
 public:
  // Inserts a view, in any state. Throws std::bad_alloc; then `view` is unchanged.
  View &insert(View &&view);
  void erase(Address address);
  // The view that is in that state and whose block starts at `address`, or nullptr.
  View *find(Address address, View::State state);
  // The live view whose block contains the address, or nullptr.
  [[nodiscard]] const View *around(Address address) const;
  [[nodiscard]] const std::map<Address, View> &all() const { return views_; }
  // Calls visit(view) for the views of exactly `bytes` in a state without a block (resting or dormant), until a call
  // returns true.
  template <class Visit>
  void each_unused(View::State state, std::uint64_t bytes, Visit visit) {
    const auto [from, to] = unused_[place_of(state)].by_bytes.equal_range(bytes);
    for (auto at = from; at != to; ++at) {
      if (visit(views_.find(at->second)->second)) return;
    }
  }
  // Changes the view's state and the counters that depend on it. Needs no host memory.
  void change(View &view, View::State state);
  // Of the views in a state without a block (resting or dormant), the one that has been unused the longest, or nullptr.
  View *oldest(View::State state);
  [[nodiscard]] std::uint64_t live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::uint64_t live() const { return live_; }
  [[nodiscard]] std::uint64_t retired_bytes() const { return retired_bytes_; }
  [[nodiscard]] std::uint64_t retired() const { return retired_; }
  [[nodiscard]] std::uint64_t resting_bytes() const { return resting_bytes_; }
  [[nodiscard]] std::uint64_t dormant_mappings() const { return dormant_mappings_; }
  // Describes the first violated invariant; empty if there is none. Defined in tests/pool_checks, for tests only.
  [[nodiscard]] std::string check_invariants() const;

 private:
  struct Unused {
    View::ByBytes by_bytes;
    View::ByUse by_use;
  };
  static std::size_t place_of(View::State state) { return state == View::State::resting ? 0 : 1; }
  static bool is_unused(View::State state) { return state == View::State::resting || state == View::State::dormant; }
  void count(const View &view, std::uint64_t sign);

  std::map<Address, View> views_;  // by the block's address
  Unused unused_[2];               // resting views, then dormant ones
  std::uint64_t uses_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_ = 0;
  std::uint64_t retired_bytes_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t resting_bytes_ = 0;
  std::uint64_t dormant_mappings_ = 0;
};

}  // namespace ration::pool::stitch

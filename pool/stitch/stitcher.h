// Serves blocks of a pool from granules of physical memory instead of slabs. The home range maps each granule at most
// once; to the pool, this range is one slab. A block that fits in no hole, or whose size hardly recurs, gets a view: an
// address range that maps free granules from anywhere side by side, plus one more granule's free end. No data is moved.
// Layer: pool, a leaf (standard library only: no CUDA). Threads: none of its own; the caller locks, and makes, executes
// and finishes one plan at a time. Owns: the bookkeeping, not the memory.
// Design: design/granules.md#blocks-from-granules
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool.h"
#include "pool/stitch/free_ranges.h"
#include "pool/stitch/granules.h"
#include "pool/stitch/plan.h"
#include "pool/stitch/seen_sizes.h"
#include "pool/stitch/views.h"

namespace ration::pool::stitch {

struct Layout {
  std::uint64_t page_bytes;  // the device's granularity of allocation, a power of two
  Address home;              // home and views are reserved ranges that start on a page
  std::uint64_t home_bytes;  // four times the size of the memory, so that there is always a free gap
  Address views;
  std::uint64_t views_bytes;
  std::uint64_t slab;                        // the id of the home range in the pool
  std::uint64_t granule_bytes = UINT64_MAX;  // largest handle by which the pool grows
};

class Stitcher {
 public:
  explicit Stitcher(Pool &pool) : pool_(pool) {}
  Stitcher(const Stitcher &) = delete;
  Stitcher &operator=(const Stitcher &) = delete;

  // Returns false if host memory has run out or the pool already has a slab in that range.
  [[nodiscard]] bool open(const Layout &layout) noexcept;
  [[nodiscard]] const Layout &layout() const { return layout_; }

  // --- requests ---

  // Notes a request of a page or more. Returns true if it is to be stitched rather than placed in a hole.
  // REQUIRES: `bytes` is a page or more.
  bool takes(std::uint64_t bytes) noexcept {
    sizes_.note(bytes);
    return (scarce_ || sizes_.are_random() || sizes_.are_irregular()) && is_stitched();
  }
  // Makes `plan` for a block of `bytes`. Returns false if free memory is too small; missing_bytes() says how much more
  // is needed.
  bool plan(std::uint64_t bytes, Plan &plan) noexcept;
  [[nodiscard]] std::uint64_t missing_bytes() const { return missing_bytes_; }
  // Finishes `plan`. Returns the block of its view (now live); nullopt if the plan failed, or made room in the home
  // range instead.
  std::optional<Block> finish(std::uint64_t bytes, Plan &plan) noexcept;

  // --- memory ---

  // Takes over a handle as an empty granule. Returns false if host memory has run out.
  bool add(std::uint64_t handle, std::uint64_t bytes) noexcept;
  // Makes `plan` to give the empty granules places in the home range.
  bool plan_home(Plan &plan) noexcept;
  // How much more memory is needed at the end of the home range to make a hole of `bytes` there.
  [[nodiscard]] std::uint64_t missing_at_end(std::uint64_t bytes) noexcept;
  // Makes `plan` to release empty granules: at least `bytes` in all, or all of them; returns how many bytes they have.
  std::uint64_t plan_release(std::uint64_t bytes, Plan &plan) noexcept;

  // The bytes of the granules that are wholly free.
  [[nodiscard]] std::uint64_t free_granule_bytes() const noexcept;
  // The bytes that plan_release() could release. Like plan_release(), this breaks up the views that are kept for reuse.
  std::uint64_t gather() noexcept;
  // All mappings and all handles, in whatever state. Throws std::bad_alloc.
  struct Everything {
    std::vector<FreeRanges::Range> mappings;
    std::vector<Plan::Part> handles;
  };
  [[nodiscard]] Everything everything() const;

  // --- blocks in views, with the same functions as Pool ---

  // Frees a block that is live or retired, as `state` says.
  FreeOutcome end(Address address, View::State state) noexcept;
  FreeOutcome retire(Address address, std::uint64_t most) noexcept;
  [[nodiscard]] View *around(Address address) noexcept { return const_cast<View *>(views_.around(address)); }
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  [[nodiscard]] Block describe(const View &view) const;

  struct Counts {
    std::uint64_t granules;
    std::uint64_t granule_bytes;
    std::uint64_t stock_bytes;
    std::uint64_t views;  // in any state
    std::uint64_t live;
    std::uint64_t live_bytes;
    std::uint64_t retired;
    std::uint64_t retired_bytes;
    std::uint64_t stitched;  // blocks so far
    std::uint64_t revived;   // the part of `stitched` that needed no driver call
    bool scarce;
  };
  [[nodiscard]] Counts counts() const noexcept;
  // Two of the counts: frees on the fast path need only these.
  [[nodiscard]] std::uint64_t retired_bytes() const noexcept { return views_.retired_bytes(); }
  [[nodiscard]] std::uint64_t live_bytes() const noexcept { return views_.live_bytes(); }
  // A page that backs a live block: its handle, its index in the handle, the offset in it at which the block's bytes
  // begin, and how many of them it holds.
  struct Backing {
    std::uint64_t handle;
    std::uint64_t page;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::vector<Backing> backing(const Block &block) const;
  // The whole handles in which a live block lies, in the order of the block's bytes. The block starts `offset` bytes
  // into the first one.
  struct Parts {
    struct Part {
      std::uint64_t handle;
      std::uint64_t bytes;
    };
    std::vector<Part> parts;
    std::uint64_t offset = 0;
  };
  // Empty if there is no such block. Throws std::bad_alloc.
  [[nodiscard]] Parts parts(const Block &block) const;
  // Describes the first violated invariant; empty if there is none. REQUIRES: no plan is in progress. Defined in
  // tests/pool_checks, for tests only.
  [[nodiscard]] std::string check_invariants() const;

 private:
  // One end of a hole that can serve as the end of a view.
  struct Edge {
    std::uint64_t bytes;
    Address boundary;  // the granule's boundary at which the edge starts or ends
    bool operator<(const Edge &other) const {
      return bytes != other.bytes ? bytes < other.bytes : boundary < other.boundary;
    }
  };
  struct Scan {
    std::vector<Edge> heads;                                 // each ends at the end of a granule
    std::vector<Edge> tails;                                 // each starts at the start of a granule
    std::vector<std::pair<std::uint64_t, GranuleId>> whole;  // wholly free granules, with the bytes of their hole
    std::uint64_t whole_bytes = 0;
  };
  // The parts from which a block is put together.
  struct Choice {
    std::uint64_t pages = 0;  // whole pages
    Edge head{0, 0};          // `bytes`: the part that is used
    Edge tail{0, 0};
    bool opens = false;  // the tail is at the start of a page that is still empty
  };

  [[nodiscard]] std::uint64_t page() const { return layout_.page_bytes; }
  // Decides from the noted sizes whether the next requests of a page or more are to be stitched.
  bool is_stitched() noexcept;
  void begin_anew() noexcept;
  Scan scan() const;
  [[nodiscard]] std::optional<Choice> choose(std::uint64_t bytes, Scan &scan, std::uint64_t pages) const;
  [[nodiscard]] std::optional<Choice> continue_run(std::uint64_t bytes, const Scan &scan, std::uint64_t pages) const;
  bool harvest(Scan &scan, std::uint64_t pages);
  bool revive(std::uint64_t bytes, Plan &plan);
  bool retake(View &view);
  bool plan_view(std::uint64_t bytes, Plan &plan);
  bool plan_page(Plan &plan);
  bool withhold_edges(const Choice &choice, View &view);
  GranuleId take_pages(std::uint64_t most, Plan &plan);
  GranuleId part_off(GranuleId from, std::uint64_t pages, Plan &plan);
  void home_in(GranuleId id, Plan &plan);
  void release(GranuleId id, Plan &plan);
  void drop(View &view, Plan &plan);
  void forget(const View &view) noexcept;
  void drop_surplus(Plan &plan);
  void undo(Plan &plan) noexcept;
  void finish_releases(const Plan &plan) noexcept;
  void finish_homings(Plan &plan) noexcept;
  std::optional<Block> finish_view(std::uint64_t bytes, Plan &plan) noexcept;
  void finish_dropped(const Plan &plan) noexcept;
  void strand(View &view, std::uint64_t mapped_bytes) noexcept;
  [[nodiscard]] std::uint64_t spare_bytes() const;
  [[nodiscard]] bool is_ample() const;
  void set_scarce(bool scarce) noexcept;
  // True if there is neither a live nor a retired block.
  [[nodiscard]] bool is_empty() const noexcept;
  void rest(View &view) noexcept;
  void return_home() noexcept;
  // Turns resting views into dormant ones, the oldest first, until the stock has `pages` pages.
  void break_up(std::uint64_t pages) noexcept;
  // Returns the memory that a view holds.
  void leave(View &view) noexcept;
  void restock(GranuleId id) noexcept;
  void gone(GranuleId id) noexcept;
  void return_gap(Address address, std::uint64_t bytes) noexcept;
  void return_range(Address address, std::uint64_t bytes) noexcept;
  [[nodiscard]] GranuleId home_at(Address address) const;
  struct Check;

  Pool &pool_;
  Layout layout_{};
  Granules granules_;
  Views views_;
  std::map<Address, GranuleId> home_;  // the granules in the home range, by their place
  FreeRanges gaps_;                    // in the home range; each gap is one withheld range of the pool
  FreeRanges view_space_;
  SeenSizes sizes_;
  bool scarce_ = false;
  std::uint64_t run_bytes_ = 0;  // the size of the last stitched block
  Address run_end_ = 0;          // end of the page that holds that block's tail
  std::uint64_t missing_bytes_ = 0;
  std::uint64_t granule_bytes_ = 0;
  // Addresses that are lost because the host had no memory to list them as free.
  std::uint64_t lost_home_bytes_ = 0;
  std::uint64_t lost_view_bytes_ = 0;
  std::uint64_t stitched_ = 0;
  std::uint64_t revived_ = 0;
};

}  // namespace ration::pool::stitch

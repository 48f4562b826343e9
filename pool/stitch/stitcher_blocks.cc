// The ends of plans and of blocks in views.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>

#include "pool/stitch/stitcher.h"

namespace ration::pool::stitch {
namespace {

using State = Granule::State;

// How many dormant views of the request's size are examined.
constexpr int kMostLookedAt = 32;
// Memory is ample while more than one part in kAmple of it is free.
constexpr std::uint64_t kAmple = 3;

}  // namespace

// --- dormant views ---

std::uint64_t Stitcher::spare_bytes() const {
  return granules_.stock_pages() * page() + views_.resting_bytes() + pool_.free_bytes();
}

bool Stitcher::is_empty() const noexcept {
  const Statistics held = pool_.statistics();
  return held.used_bytes == 0 && held.retired_bytes == 0 && views_.live() == 0 && views_.retired() == 0;
}

bool Stitcher::is_ample() const {
  return spare_bytes() > granule_bytes_ / kAmple;
}

bool Stitcher::revive(std::uint64_t bytes, Plan &plan) {
  View *found = nullptr;
  // Exactly this size: a larger view would hold more than the block needs, and a later request may need that one.
  views_.each_unused(View::State::resting, bytes, [&](View &view) {
    found = &view;
    return true;
  });
  int looked_at = 0;
  if (found == nullptr) {
    views_.each_unused(View::State::dormant, bytes, [&](View &view) {
      if (retake(view)) found = &view;
      return found != nullptr || ++looked_at == kMostLookedAt;
    });
  }
  if (found == nullptr) return false;
  views_.change(*found, View::State::mapping);
  plan.view = found->address;
  plan.view_range = found->range;
  plan.view_bytes = found->range_bytes;
  plan.view_mapped = true;
  ++revived_;
  return true;
}

void Stitcher::break_up(std::uint64_t pages) noexcept {
  while (granules_.stock_pages() < pages) {
    View *view = views_.oldest(View::State::resting);
    if (view == nullptr) return;
    leave(*view);
    views_.change(*view, View::State::dormant);
  }
}

// Returns stocked granules that are still mapped in the home range to the pool's holes, so that those grow together.
void Stitcher::return_home() noexcept {
  for (auto at = granules_.stock().begin(); at != granules_.stock().end();) {
    const GranuleId id = (at++)->second;
    if (granules_.at(id).home == 0 || granules_.at(id).bare) continue;
    granules_.take(id);
    granules_.at(id).state = State::home;
    (void)pool_.restore(granules_.at(id).home);
  }
}

void Stitcher::rest(View &view) noexcept {
  views_.change(view, View::State::resting);
  if (!scarce_ || !is_ample()) break_up(UINT64_MAX);
  if (!scarce_) return_home();
}

// Takes all parts of a view, if all of them are free.
bool Stitcher::retake(View &view) {
  const std::size_t first = view.head.bytes != 0 ? 1 : 0;
  const std::size_t end = view.granules.size() - (view.tail.bytes != 0 ? 1 : 0);
  const auto is_free = [this](const Piece &piece, GranuleId id) {
    if (piece.bytes == 0) return true;
    const Pool::Hole hole = pool_.hole_around(piece.address);
    return granules_.at(id).state == State::home && home_at(piece.address) == id &&
           hole.address + hole.bytes >= piece.address + piece.bytes;
  };
  const auto take = [this](const Piece &piece) {
    return piece.bytes == 0 || pool_.withhold(piece.address, piece.bytes);
  };
  const auto place_of = [this](GranuleId id) { return Piece{granules_.at(id).home, granules_.at(id).pages * page()}; };
  for (std::size_t i = first; i < end; ++i) {
    const GranuleId id = view.granules[i];
    if (granules_.at(id).state != State::stock && !is_free(place_of(id), id)) return false;
  }
  if (!is_free(view.head, view.granules.front()) || !is_free(view.tail, view.granules.back())) return false;
  bool taken = take(view.head) && take(view.tail);
  for (std::size_t i = first; i < end && taken; ++i) {
    const GranuleId id = view.granules[i];
    if (granules_.at(id).state == State::stock) {
      granules_.take(id);
    } else if (taken = take(place_of(id)); taken) {
      granules_.at(id).state = State::transit;
    }
  }
  if (!taken) leave(view);  // the host has no memory
  return taken;
}

void Stitcher::restock(GranuleId id) noexcept {
  const Granule &granule = granules_.at(id);
  if (granule.state != State::transit && granule.state != State::view) return;
  if (granule.handle != 0) {
    granules_.put(id);
  } else {
    granules_.remove(id);  // a part of a handle that was not divided after all
  }
}

void Stitcher::leave(View &view) noexcept {
  const std::size_t first = view.head.bytes != 0 ? 1 : 0;
  for (std::size_t i = first; i < view.granules.size(); ++i) restock(view.granules[i]);  // the tail's is at home
  if (view.head.bytes != 0) (void)pool_.restore(view.head.address);
  if (view.tail.bytes != 0) (void)pool_.restore(view.tail.address);
}

// --- the end of a plan ---

std::optional<Block> Stitcher::finish(std::uint64_t bytes, Plan &plan) noexcept {
  finish_dropped(plan);
  finish_releases(plan);
  finish_homings(plan);
  return plan.view == 0 ? std::nullopt : finish_view(bytes, plan);
}

void Stitcher::finish_dropped(const Plan &plan) noexcept {
  for (const Plan::Dropped &each : plan.dropped) {
    View &view = *views_.find(each.view, View::State::mapping);
    if (each.done) {
      return_range(view.range, view.range_bytes);
      forget(view);
    } else {
      views_.change(view, View::State::dormant);
    }
  }
}

// Forgets a granule whose handle was released. Its place in the home range becomes a gap.
void Stitcher::gone(GranuleId id) noexcept {
  const Address home = granules_.at(id).home;
  const std::uint64_t bytes = granules_.at(id).pages * page();
  granule_bytes_ -= bytes;
  if (home != 0) {
    home_.erase(home);
    return_gap(home, bytes);
  }
  granules_.remove(id);
}

// REQUIRES: the pool withholds it as a range of its own.
void Stitcher::return_gap(Address address, std::uint64_t bytes) noexcept {
  try {
    const FreeRanges::Range whole = gaps_.give(address, bytes);
    // The pool has one withheld range for each gap.
    if (address + bytes < whole.address + whole.bytes) pool_.join_withheld(address, address + bytes);
    if (whole.address < address) pool_.join_withheld(whole.address, address);
  } catch (...) {
    lost_home_bytes_ += bytes;
  }
}

void Stitcher::return_range(Address address, std::uint64_t bytes) noexcept {
  try {
    (void)view_space_.give(address, bytes);
  } catch (...) {
    lost_view_bytes_ += bytes;
  }
}

void Stitcher::finish_releases(const Plan &plan) noexcept {
  for (const Plan::Release &each : plan.releases) {
    for (const Plan::Part &part : each.into) {
      Granule &granule = granules_.at(part.granule);
      granule.handle = part.handle;
      granule_bytes_ += part.done ? part.bytes : 0;
    }
    each.done ? gone(each.granule) : restock(each.granule);
    if (!each.into.empty() && each.rest_is_free) restock(each.into.back().granule);
  }
}

void Stitcher::finish_homings(Plan &plan) noexcept {
  for (const Plan::Homing &each : plan.homings) {
    Granule &granule = granules_.at(each.granule);
    granule.home = each.mapped ? each.address : 0;
    granule.bare = each.mapped && !each.usable;
    if (!each.mapped) {
      home_.erase(each.address);
      return_gap(each.address, each.bytes);
    }
    if (!each.usable) {
      restock(each.granule);
      continue;
    }
    granule.state = State::home;
    (void)pool_.restore(each.address);
  }
}

std::optional<Block> Stitcher::finish_view(std::uint64_t bytes, Plan &plan) noexcept {
  View &view = *views_.find(plan.view, View::State::mapping);
  const std::uint64_t tail_bytes =
      plan.opened == 0 ? 0 : view.bytes + (view.address - view.range) - (view.range_bytes - page());
  const bool complete = plan.view_mapped && (plan.opened == 0 || pool_.withhold(plan.opened, tail_bytes));
  if (complete) {
    if (plan.opened != 0) view.tail = {plan.opened, tail_bytes};
    for (std::size_t i = view.head.bytes != 0 ? 1 : 0; i < view.granules.size(); ++i) {
      Granule &granule = granules_.at(view.granules[i]);
      if (granule.state == State::transit) granule.state = State::view;
    }
    view.requested = bytes;
    view.marked = false;
    view.name = 0;
    views_.change(view, View::State::live);
    ++stitched_;
    return describe(view);
  }
  leave(view);
  strand(view, plan.mapped_bytes);
  return std::nullopt;
}

// Ends a view that holds nothing. If part of it is still mapped, that part stays as a dormant view, only to be dropped
// later.
void Stitcher::strand(View &view, std::uint64_t mapped_bytes) noexcept {
  if (mapped_bytes == 0) {
    return_range(view.range, view.range_bytes);
    return forget(view);
  }
  std::size_t mapped = 0;
  for (std::uint64_t bytes = 0; bytes < mapped_bytes; ++mapped)
    bytes += granules_.at(view.granules[mapped]).pages * page();
  for (std::size_t i = mapped; i < view.granules.size(); ++i) {
    std::vector<Address> &listed = granules_.at(view.granules[i]).views;
    if (const auto at = std::find(listed.begin(), listed.end(), view.address); at != listed.end()) listed.erase(at);
  }
  view.granules.resize(mapped);
  if (mapped_bytes != view.range_bytes) return_range(view.range + mapped_bytes, view.range_bytes - mapped_bytes);
  view.range_bytes = mapped_bytes;
  view.bytes = 0;
  view.head = view.tail = {};
  views_.change(view, View::State::dormant);
}

// Undoes a plan that could not be completed; none of it was executed.
void Stitcher::undo(Plan &plan) noexcept {
  for (const Plan::Homing &each : plan.homings) {
    if (granules_.at(each.granule).home == 0 && each.address != 0) {
      home_.erase(each.address);
      return_gap(each.address, each.bytes);
    }
    restock(each.granule);
  }
  for (const Plan::Release &each : plan.releases) {
    for (const Plan::Part &part : each.into) {
      if (granules_.at(part.granule).state != State::absent) granules_.remove(part.granule);
    }
    restock(each.granule);
  }
  finish_dropped(plan);
  plan = Plan{};
}

// --- blocks ---

Block Stitcher::describe(const View &view) const {
  return {view.address, view.bytes, view.requested, layout_.slab};
}

FreeOutcome Stitcher::end(Address address, View::State state) noexcept {
  View *view = views_.find(address, state);
  if (view == nullptr) return {FreeOutcome::Kind::kNotABlock, 0};
  rest(*view);
  return {FreeOutcome::Kind::kFreed, view->bytes};
}

FreeOutcome Stitcher::retire(Address address, std::uint64_t most) noexcept {
  View *view = views_.find(address, View::State::live);
  if (view == nullptr) return {FreeOutcome::Kind::kNotABlock, 0};
  if (view->bytes > most) return {FreeOutcome::Kind::kTooLarge, 0};
  views_.change(*view, View::State::retired);
  return {FreeOutcome::Kind::kFreed, view->bytes};
}

std::size_t Stitcher::live_blocks(Address from, Block *blocks, std::size_t count) const noexcept {
  std::size_t found = 0;
  for (auto at = views_.all().lower_bound(from); at != views_.all().end() && found < count; ++at) {
    if (at->second.state == View::State::live) blocks[found++] = describe(at->second);
  }
  return found;
}

// --- memory ---

bool Stitcher::add(std::uint64_t handle, std::uint64_t bytes) noexcept try {
  const GranuleId id = granules_.add(bytes / page());
  granules_.at(id).handle = handle;
  granules_.put(id);
  granule_bytes_ += bytes;
  return true;
} catch (...) {
  return false;
}

// Proceeds from the largest granule, so that holes grow together.
bool Stitcher::plan_home(Plan &plan) noexcept try {
  break_up(UINT64_MAX);
  plan.homings.reserve(granules_.stock().size());
  while (!granules_.stock().empty()) {
    const GranuleId id = granules_.stock().rbegin()->second;
    granules_.take(id);
    home_in(id, plan);
  }
  return !plan.homings.empty();
} catch (...) {
  undo(plan);
  return false;
}

std::uint64_t Stitcher::missing_at_end(std::uint64_t bytes) noexcept {
  const std::uint64_t rounded = pool::bytes_of(units_of(bytes));
  const std::uint64_t whole = (rounded + page() - 1) / page() * page();
  const Address next = gaps_.next(whole);
  const Pool::Hole hole = pool_.hole_around(next - 1);
  if (hole.bytes == 0) return whole;
  const std::uint64_t there = std::min(next - hole.address, rounded - 1);
  return (rounded - there + page() - 1) / page() * page();
}

std::uint64_t Stitcher::plan_release(std::uint64_t bytes, Plan &plan) noexcept try {
  std::uint64_t released = 0;
  break_up(UINT64_MAX);
  Scan free = scan();
  (void)harvest(free, UINT64_MAX);
  while (released < bytes && !granules_.stock().empty()) {
    GranuleId id = granules_.largest_within((bytes - released + page() - 1) / page());
    if (id == 0) id = granules_.stock().begin()->second;
    release(id, plan);
    released += granules_.at(id).pages * page();
  }
  return released;
} catch (...) {
  undo(plan);
  return 0;
}

std::uint64_t Stitcher::free_granule_bytes() const noexcept try {
  std::uint64_t resting = 0;
  for (const auto &[address, view] : views_.all()) {
    if (view.state != View::State::resting) continue;
    for (const GranuleId id : view.granules) {
      resting += granules_.at(id).state == State::view ? granules_.at(id).pages * page() : 0;
    }
  }
  return granules_.stock_pages() * page() + resting + scan().whole_bytes;
} catch (...) {
  return granules_.stock_pages() * page();
}

std::uint64_t Stitcher::gather() noexcept {
  break_up(UINT64_MAX);
  return free_granule_bytes();
}

Stitcher::Everything Stitcher::everything() const {
  Everything all;
  for (const auto &[address, id] : home_) all.mappings.push_back({address, granules_.at(id).pages * page()});
  for (const auto &[address, view] : views_.all()) all.mappings.push_back({view.range, view.range_bytes});
  granules_.each([&](GranuleId id, const Granule &granule) {
    if (granule.handle != 0) all.handles.push_back({id, granule.handle, granule.pages * page(), false});
  });
  return all;
}

Stitcher::Counts Stitcher::counts() const noexcept {
  return {.granules = granules_.count(),
          .granule_bytes = granule_bytes_,
          .stock_bytes = granules_.stock_pages() * page(),
          .views = views_.all().size(),
          .live = views_.live(),
          .live_bytes = views_.live_bytes(),
          .retired = views_.retired(),
          .retired_bytes = views_.retired_bytes(),
          .stitched = stitched_,
          .revived = revived_,
          .scarce = scarce_};
}

std::vector<Stitcher::Backing> Stitcher::backing(const Block &block) const {
  std::vector<Backing> pages;
  const Parts found = parts(block);
  std::uint64_t offset = found.offset;
  std::uint64_t left = block.bytes;
  for (const Parts::Part &part : found.parts) {
    while (offset < part.bytes && left != 0) {
      const std::uint64_t bytes = std::min(left, page() - offset % page());
      pages.push_back({part.handle, offset / page(), offset % page(), bytes});
      offset += bytes;
      left -= bytes;
    }
    offset = 0;
  }
  return pages;
}

Stitcher::Parts Stitcher::parts(const Block &block) const {
  Parts found;
  const Address block_end = block.address + block.bytes;
  const auto add = [&](const Granule &granule, Address at) {
    if (found.parts.empty()) found.offset = block.address - at;
    found.parts.push_back({granule.handle, granule.pages * page()});
    return at + granule.pages * page();
  };
  if (const View *view = views_.around(block.address); view != nullptr) {
    Address at = view->range;
    for (std::size_t i = 0; i < view->granules.size() && at < block_end; ++i) {
      at = add(granules_.at(view->granules[i]), at);
    }
    return found;
  }
  for (Address at = block.address; at < block_end;) {
    const GranuleId id = home_at(at);
    if (id == 0) return {};
    at = add(granules_.at(id), granules_.at(id).home);
  }
  return found;
}

}  // namespace ration::pool::stitch

// Requests: chooses the parts of a view, and makes the plan that maps them.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/stitch/stitcher.h"

#include <algorithm>

namespace ration::pool::stitch {
namespace {

using State = Granule::State;

// The largest remainder, as a part of a page, that a block may leave in a hole. Above that, the block's end gets a page
// of its own.
constexpr std::uint64_t kTolerated = 4;
// The most mappings of dormant views: kMappings, and kMappingsEach more for each granule. Above that the oldest views
// are dropped.
constexpr std::uint64_t kMappingsEach = 8;
constexpr std::uint64_t kMappings = 16384;
constexpr std::uint64_t kDroppedAtOnce = 4;

// A run does not open pages if that would leave less than this part of all memory in the stock.
constexpr std::uint64_t kKeptFromRuns = 128;
// If sizes are irregular but not random (seen_sizes.h), requests are stitched only while less than this part of all
// memory is free.
constexpr std::uint64_t kVeryAmple = 2;

}  // namespace

bool Stitcher::open(const Layout &layout) noexcept try {
  layout_ = layout;
  pool_.set_growing(true);
  (void)gaps_.give(layout.home, layout.home_bytes);
  (void)view_space_.give(layout.views, layout.views_bytes);
  if (pool_.add_slab({layout.home, layout.home_bytes, layout.slab}) != AddSlabOutcome::kAdded) return false;
  if (pool_.withhold(layout.home, layout.home_bytes)) return true;
  (void)pool_.remove_slab(layout.slab);
  return false;
} catch (...) {
  return false;
}

// In an empty pool, all memory can lie in one piece again, whatever the program requested before.
void Stitcher::begin_anew() noexcept {
  sizes_.forget();
  set_scarce(false);
}

bool Stitcher::is_stitched() noexcept {
  if (is_empty()) {
    begin_anew();
    return false;
  }
  // Blocks of one size in a row fill without a gap either holes or views, but not both, so a run keeps the current
  // choice.
  if (!sizes_.is_run())
    set_scarce(sizes_.are_random() || (sizes_.are_irregular() && spare_bytes() < granule_bytes_ / kVeryAmple));
  return scarce_;
}

void Stitcher::set_scarce(bool scarce) noexcept {
  if (scarce_ == scarce) return;
  scarce_ = scarce;
  if (!scarce) {
    break_up(UINT64_MAX);
    return_home();
  }
}

// --- what is free ---

GranuleId Stitcher::home_at(Address address) const {
  const auto after = home_.upper_bound(address);
  if (after == home_.begin()) return 0;
  const auto &[start, id] = *std::prev(after);
  return address - start < granules_.at(id).pages * page() ? id : 0;
}

Stitcher::Scan Stitcher::scan() const {
  Scan scan;
  pool_.each_hole(layout_.home, [&](const Pool::Hole &hole) {
    const Address hole_end = hole.address + hole.bytes;
    for (auto at = std::prev(home_.upper_bound(hole.address)); at != home_.end() && at->first < hole_end; ++at) {
      const Address granule_end = at->first + granules_.at(at->second).pages * page();
      const Address low = std::max(at->first, hole.address);
      const Address high = std::min(granule_end, hole_end);
      if (low == at->first && high == granule_end) {
        scan.whole.emplace_back(hole.bytes, at->second);
        scan.whole_bytes += high - low;
      } else if (high == granule_end) {
        scan.heads.push_back({high - low, granule_end});
      } else if (low == at->first) {
        scan.tails.push_back({high - low, at->first});
      }
    }
  });
  std::sort(scan.heads.begin(), scan.heads.end());
  std::sort(scan.tails.begin(), scan.tails.end());
  std::sort(scan.whole.begin(), scan.whole.end());
  return scan;
}

// Takes wholly free granules from holes into the stock, those in the smallest holes first, until the stock has `pages`
// pages. They stay mapped in the home range.
bool Stitcher::harvest(Scan &scan, std::uint64_t pages) {
  for (const auto &[hole_bytes, id] : scan.whole) {
    if (granules_.stock_pages() >= pages) break;
    if (!pool_.withhold(granules_.at(id).home, granules_.at(id).pages * page())) return false;
    granules_.put(id);
  }
  return granules_.stock_pages() >= pages;
}

// --- the choice ---

std::optional<Stitcher::Choice> Stitcher::choose(std::uint64_t bytes, Scan &scan, std::uint64_t pages) const {
  const std::uint64_t whole = bytes / page();
  const std::uint64_t rest = bytes % page();
  if (rest == 0 && whole <= pages) return Choice{whole, {}, {}, false};
  std::uint64_t waste = UINT64_MAX;
  Choice best;
  // Considers one edge. An edge of a granule of several pages may hold whole pages as well.
  const auto consider = [&](const Edge &edge, bool is_head) {
    const std::uint64_t held = std::min((edge.bytes - rest) / page(), whole);
    const std::uint64_t left = (edge.bytes - rest) % page();
    if (whole - held > pages || left >= waste || (held == whole && whole == 0)) return;
    waste = left;
    best = Choice{whole - held, {}, {}, false};
    (is_head ? best.head : best.tail) = {rest + held * page(), edge.boundary};
  };
  const auto consider_all = [&](const std::vector<Edge> &edges, bool is_head) {
    const Edge least{std::max<std::uint64_t>(rest, 1), 0};
    auto edge = std::lower_bound(edges.begin(), edges.end(), least);
    if (edge != edges.end() && edge->bytes < page()) consider(*edge, is_head);  // the tightest one below a page
    edge = std::lower_bound(edge, edges.end(), Edge{page(), 0});
    for (; edge != edges.end(); ++edge) consider(*edge, is_head);
  };
  consider_all(scan.tails, false);
  consider_all(scan.heads, true);
  if (waste > page() / kTolerated && rest != 0 && whole + 1 <= pages) return Choice{whole, {}, {rest, 0}, true};
  return waste == UINT64_MAX ? std::nullopt : std::optional(best);
}

// Successive blocks of one size will most likely be freed together, and then the pages that they share are free.
std::optional<Stitcher::Choice> Stitcher::continue_run(std::uint64_t bytes, const Scan &scan,
                                                       std::uint64_t pages) const {
  if (bytes != run_bytes_ || bytes < page()) return std::nullopt;
  const auto head = std::find_if(scan.heads.begin(), scan.heads.end(),
                                 [this](const Edge &edge) { return edge.boundary == run_end_; });
  if (head == scan.heads.end() || head->bytes >= page()) return std::nullopt;
  const std::uint64_t left = bytes - head->bytes;
  const bool opens = left % page() != 0;
  if (left / page() + (opens ? 1 : 0) + granule_bytes_ / page() / kKeptFromRuns > pages) return std::nullopt;
  return Choice{left / page(), *head, {left % page(), 0}, opens};
}

// --- plans ---

bool Stitcher::plan(std::uint64_t bytes, Plan &plan) noexcept try {
  const std::uint64_t rounded = pool::bytes_of(units_of(bytes));
  missing_bytes_ = page();
  if (!is_ample()) break_up(UINT64_MAX);
  if (rounded < page()) {
    break_up(1);
    if (granules_.stock_pages() != 0) return plan_page(plan);
  } else if (revive(rounded, plan)) {
    return true;
  }
  break_up(rounded / page() + 1);
  if (plan_view(rounded, plan)) return true;
  break_up(UINT64_MAX);
  return plan_view(rounded, plan);
} catch (...) {
  undo(plan);
  return false;
}

bool Stitcher::plan_page(Plan &plan) {
  plan.homings.reserve(plan.homings.size() + 1);
  GranuleId id = granules_.largest_within(1);
  if (id == 0) id = granules_.smallest_above(1);
  if (granules_.at(id).pages > 1 && scarce_) {
    id = part_off(id, 1, plan);
  } else {
    granules_.take(id);
  }
  home_in(id, plan);
  return true;
}

// REQUIRES: plan.homings has room, so that no granule is in transit without being in the plan.
void Stitcher::home_in(GranuleId id, Plan &plan) {
  const Granule &granule = granules_.at(id);
  const std::uint64_t bytes = granule.pages * page();
  const bool is_mapped = granule.home != 0;
  plan.homings.push_back({id, granule.handle, bytes, granule.home, is_mapped, is_mapped && !granule.bare});
  if (is_mapped) return;
  const Address address = gaps_.next(bytes);
  if (address == 0) throw std::bad_alloc();
  const auto place = home_.emplace(address, id).first;
  const bool is_part = gaps_.at(address) != bytes;
  bool is_split = false;
  try {
    is_split = is_part && pool_.split_withheld(address, bytes);
    if (is_part && !is_split) throw std::bad_alloc();
    (void)gaps_.take(bytes);
  } catch (...) {
    if (is_split) pool_.join_withheld(address, address + bytes);
    home_.erase(place);
    throw;
  }
  plan.homings.back().address = address;
}

// REQUIRES: the granule is in the stock.
void Stitcher::release(GranuleId id, Plan &plan) {
  const Granule &granule = granules_.at(id);
  plan.releases.push_back({id, granule.handle, granule.pages * page(), granule.home, {}});
  granules_.take(id);
  for (const Address address : granules_.at(id).views) {
    if (View *view = views_.find(address, View::State::dormant); view != nullptr) drop(*view, plan);
  }
}

// REQUIRES: the view is dormant. Its granules list it until it is unmapped.
void Stitcher::drop(View &view, Plan &plan) {
  plan.dropped.push_back({view.address, view.range, view.range_bytes});
  views_.change(view, View::State::mapping);
}

void Stitcher::forget(const View &view) noexcept {
  for (const GranuleId id : view.granules) std::erase(granules_.at(id).views, view.address);
  views_.erase(view.address);
}

void Stitcher::drop_surplus(Plan &plan) {
  for (std::uint64_t i = 0; i < kDroppedAtOnce; ++i) {
    const bool many = views_.dormant_mappings() > kMappings + kMappingsEach * granules_.count();
    if (!many && view_space_.free_bytes() > layout_.views_bytes / 2) return;
    View *oldest = views_.oldest(View::State::dormant);
    if (oldest == nullptr) return;
    drop(*oldest, plan);
  }
}

// Splits a granule of the stock; returns the part that has `pages` pages.
GranuleId Stitcher::part_off(GranuleId from, std::uint64_t pages, Plan &plan) {
  const std::uint64_t left = granules_.at(from).pages - pages;
  release(from, plan);
  Plan::Release &split = plan.releases.back();
  split.into.reserve(2);
  const GranuleId part = granules_.add(pages);
  split.into.push_back({part, 0, pages * page()});
  split.into.push_back({granules_.add(left), 0, left * page()});
  return part;
}

// Returns a granule of at most `most` pages.
GranuleId Stitcher::take_pages(std::uint64_t most, Plan &plan) {
  if (const GranuleId id = granules_.largest_within(most); id != 0) {
    granules_.take(id);
    return id;
  }
  if (const GranuleId id = granules_.smallest_above(most); id != 0) return part_off(id, most, plan);
  for (Plan::Release &split : plan.releases) {
    if (!split.rest_is_free) continue;
    Plan::Part &rest = split.into.back();
    if (rest.bytes <= most * page()) {
      split.rest_is_free = false;
      return rest.granule;
    }
    const GranuleId part = rest.granule;
    const std::uint64_t left = rest.bytes - most * page();
    split.into.push_back({0, 0, left});  // names no granule until there is one
    split.into.back().granule = granules_.add(left / page());
    granules_.resize(part, most);
    (split.into.end() - 2)->bytes = most * page();
    return part;
  }
  throw std::bad_alloc();  // cannot happen otherwise: the caller has counted the pages
}

bool Stitcher::withhold_edges(const Choice &choice, View &view) {
  if (choice.head.bytes != 0) {
    const Piece head{choice.head.boundary - choice.head.bytes, choice.head.bytes};
    if (!pool_.withhold(head.address, head.bytes)) return false;
    view.head = head;
  }
  if (choice.tail.bytes != 0 && !choice.opens) {
    if (!pool_.withhold(choice.tail.boundary, choice.tail.bytes)) return false;
    view.tail = {choice.tail.boundary, choice.tail.bytes};
  }
  return true;
}

bool Stitcher::plan_view(std::uint64_t bytes, Plan &plan) {
  Scan free = scan();
  if (scarce_) (void)harvest(free, UINT64_MAX);
  const std::uint64_t pages = granules_.stock_pages() + (scarce_ ? 0 : free.whole_bytes / page());
  std::optional<Choice> choice = continue_run(bytes, free, pages);
  if (!choice) choice = choose(bytes, free, pages);
  if (!choice) {
    const std::uint64_t needed = (bytes + page() - 1) / page();
    missing_bytes_ = (needed - std::min(needed - 1, pages)) * page();
    return false;
  }
  if (!scarce_ && !harvest(free, choice->pages + (choice->opens ? 1 : 0))) return false;
  drop_surplus(plan);
  View view;
  view.bytes = bytes;
  view.granules.reserve(choice->pages + 2);
  plan.homings.reserve(plan.homings.size() + 1);
  if (!withhold_edges(*choice, view)) {
    leave(view);
    return false;
  }
  try {
    if (view.head.bytes != 0) view.granules.push_back(home_at(view.head.address));
    for (std::uint64_t left = choice->pages; left != 0;) {
      view.granules.push_back(take_pages(left, plan));
      left -= granules_.at(view.granules.back()).pages;
    }
    if (choice->opens) {
      view.granules.push_back(take_pages(1, plan));
      home_in(view.granules.back(), plan);
      plan.opened = plan.homings.back().address;
    } else if (view.tail.bytes != 0) {
      view.granules.push_back(home_at(view.tail.address));
    }
    for (const GranuleId id : view.granules) {
      plan.mappings.push_back({id, granules_.at(id).handle, granules_.at(id).pages * page()});
      plan.view_bytes += plan.mappings.back().bytes;
      granules_.at(id).views.reserve(granules_.at(id).views.size() + 2);  // both ends may be in the same granule
    }
    view.range = plan.view_range = view_space_.take(plan.view_bytes);
    if (view.range == 0) throw std::bad_alloc();
    view.range_bytes = plan.view_bytes;
    view.address = view.range + (view.head.bytes != 0 ? plan.mappings.front().bytes - view.head.bytes : 0);
    plan.view = views_.insert(std::move(view)).address;
  } catch (...) {  // insert() failed: `view` is unchanged
    if (view.range != 0) return_range(view.range, view.range_bytes);
    leave(view);
    throw;
  }
  run_bytes_ = bytes;
  run_end_ = choice->opens ? plan.opened + page() : choice->tail.bytes != 0 ? choice->tail.boundary + page() : 0;
  const View &placed = *views_.find(plan.view, View::State::mapping);
  for (const GranuleId id : placed.granules) granules_.at(id).views.push_back(placed.address);
  return true;
}

}  // namespace ration::pool::stitch

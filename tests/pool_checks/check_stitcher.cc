// The invariants of a stitcher: each granule is in one place, the pool withholds exactly what is in no place of its
// own, and all sums agree.
// Threads: the caller locks.
#include <map>
#include <set>
#include <string>

#include "pool/stitch/stitcher.h"

namespace ration::pool::stitch {
namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

bool holds(const View &view) {
  return view.state == View::State::live || view.state == View::State::retired || view.state == View::State::resting;
}

// Disjoint ranges by their start.
class Ranges {
 public:
  // False: it overlaps another one.
  bool add(Address address, std::uint64_t bytes) {
    const auto after = ranges_.upper_bound(address);
    if (after != ranges_.end() && after->first < address + bytes) return false;
    if (after != ranges_.begin() && std::prev(after)->first + std::prev(after)->second > address) return false;
    ranges_.emplace(address, bytes);
    bytes_ += bytes;
    return true;
  }
  [[nodiscard]] const std::map<Address, std::uint64_t> &all() const { return ranges_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<Address, std::uint64_t> ranges_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::string Views::check_invariants() const {
  Views sums;
  std::size_t unused[2] = {0, 0};
  for (const auto &[address, view] : views_) {
    if (view.address != address) return "a view is listed at another address";
    sums.count(view, 1);
    if (!is_unused(view.state)) continue;
    const Unused &index = unused_[place_of(view.state)];
    const auto use = index.by_use.find(view.used);
    if (use == index.by_use.end() || use->second != address) return "an unused view is not in the order of use";
    const auto [from, to] = index.by_bytes.equal_range(view.bytes);
    std::size_t found = 0;
    for (auto at = from; at != to; ++at) found += at->second == address ? 1 : 0;
    if (found != 1) return "an unused view is not listed by its size";
    ++unused[place_of(view.state)];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (unused_[i].by_bytes.size() != unused[i] || unused_[i].by_use.size() != unused[i]) {
      return "a list of unused views has another";
    }
  }
  if (sums.live_ != live_ || sums.live_bytes_ != live_bytes_) return "live views are miscounted";
  if (sums.retired_ != retired_ || sums.retired_bytes_ != retired_bytes_) return "retired views are miscounted";
  if (sums.resting_bytes_ != resting_bytes_) return "resting views are miscounted";
  return sums.dormant_mappings_ == dormant_mappings_ ? "" : "dormant views are miscounted";
}

struct Stitcher::Check {
  const Stitcher &stitcher;
  Ranges places;                                     // of granules, and gaps
  Ranges withheld;                                   // as the pool should have it
  std::map<GranuleId, std::multiset<Address>> maps;  // the views that map it
  std::set<GranuleId> in_views;

  [[nodiscard]] std::uint64_t bytes_of(GranuleId id) const { return stitcher.granules_.at(id).pages * stitcher.page(); }
  [[nodiscard]] bool exists(GranuleId id) const {
    return id != 0 && id < stitcher.granules_.end() && stitcher.granules_.at(id).state != Granule::State::absent;
  }

  std::string gaps() {
    Address before = 0;
    for (const auto &[address, bytes] : stitcher.gaps_.all()) {
      if (address == before) return "two adjacent gaps";
      if (!places.add(address, bytes) || !withheld.add(address, bytes)) return "gaps overlap";
      before = address + bytes;
    }
    return "";
  }

  std::string piece(const View &view, const Piece &piece, GranuleId id, bool is_head) {
    const Granule &granule = stitcher.granules_.at(id);
    if (piece.bytes > bytes_of(id)) return "an end is larger than its granule";
    const Address expected = is_head ? granule.home + bytes_of(id) - piece.bytes : granule.home;
    if (granule.home == 0 || piece.address != expected) return "an end is not at the end of its granule";
    if (!holds(view)) return "";
    if (granule.state != Granule::State::home) return "an end is in a granule that is not at home";
    return withheld.add(piece.address, piece.bytes) ? "" : "an end overlaps another, or a gap";
  }

  std::string view(const View &view) {
    if (view.state == View::State::mapping) return "is left in the making";
    std::uint64_t bytes = 0;
    for (const GranuleId id : view.granules) {
      if (!exists(id)) return "maps a granule that does not exist";
      bytes += bytes_of(id);
      maps[id].insert(view.address);
    }
    if (bytes != view.range_bytes || bytes == 0) return "has a wrong range";
    if (view.bytes == 0) return view.state == View::State::dormant ? "" : "is used although it fits no block";
    const GranuleId first = view.granules.front();
    const GranuleId last = view.granules.back();
    const std::uint64_t skipped = view.head.bytes == 0 ? 0 : bytes_of(first) - view.head.bytes;
    const std::uint64_t spared = view.tail.bytes == 0 ? 0 : bytes_of(last) - view.tail.bytes;
    if (view.address != view.range + skipped) return "starts at a wrong address";
    if (view.bytes + skipped + spared != bytes) return "has a wrong size";
    if (holds(view) && view.state != View::State::resting && view.requested > view.bytes) return "is too small";
    if (view.head.bytes != 0) {
      if (std::string wrong = piece(view, view.head, first, true); !wrong.empty()) return wrong;
    }
    if (view.tail.bytes != 0) {
      if (std::string wrong = piece(view, view.tail, last, false); !wrong.empty()) return wrong;
    }
    if (!holds(view)) return "";
    const std::size_t end = view.granules.size() - (view.tail.bytes == 0 ? 0 : 1);
    for (std::size_t i = view.head.bytes == 0 ? 0 : 1; i < end; ++i) {
      if (stitcher.granules_.at(view.granules[i]).state != Granule::State::view) return "holds what is elsewhere";
      if (!in_views.insert(view.granules[i]).second) return "shares a granule with another one";
    }
    return "";
  }

  std::string views() {
    if (std::string wrong = stitcher.views_.check_invariants(); !wrong.empty()) return wrong;
    Ranges ranges;
    for (const auto &[address, each] : stitcher.views_.all()) {
      if (std::string wrong = view(each); !wrong.empty()) return "view " + number(address) + " " + wrong;
      if (!ranges.add(each.range, each.range_bytes)) return "views overlap";
    }
    for (const auto &[address, bytes] : stitcher.view_space_.all()) {
      if (!ranges.add(address, bytes)) return "a view has free addresses";
    }
    const std::uint64_t lost = stitcher.layout_.views_bytes - ranges.bytes();
    return lost == stitcher.lost_view_bytes_ ? "" : "addresses of views are lost";
  }

  std::string granule(GranuleId id) {
    const Granule &granule = stitcher.granules_.at(id);
    const bool stocked = stitcher.granules_.stock().contains({granule.pages, id});
    if (granule.handle == 0 || granule.pages == 0) return "has no memory";
    if (granule.state == Granule::State::transit) return "is left in transit";
    if (stocked != (granule.state == Granule::State::stock)) return "is in the stock or not";
    if (in_views.contains(id) != (granule.state == Granule::State::view)) return "is in a view or not";
    if (granule.state == Granule::State::home && granule.home == 0) return "is at home without a place";
    const std::multiset<Address> listed(granule.views.begin(), granule.views.end());
    if (listed != maps[id]) return "lists other views than those that map it";
    if (granule.home == 0) return "";
    const auto home = stitcher.home_.find(granule.home);
    if (home == stitcher.home_.end() || home->second != id) return "is not listed at its place";
    if (!places.add(granule.home, bytes_of(id))) return "overlaps another, or a gap";
    const bool elsewhere = granule.state != Granule::State::home;
    return !elsewhere || withheld.add(granule.home, bytes_of(id)) ? "" : "is elsewhere, and an end is in it";
  }

  std::string granules() {
    std::set<std::uint64_t> handles;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t stocked = 0;
    std::uint64_t homes = 0;
    for (GranuleId id = 1; id < stitcher.granules_.end(); ++id) {
      if (!exists(id)) continue;
      if (std::string wrong = granule(id); !wrong.empty()) return "granule " + number(id) + " " + wrong;
      const Granule &each = stitcher.granules_.at(id);
      if (!handles.insert(each.handle).second) return "two granules have one handle";
      ++count;
      bytes += bytes_of(id);
      stocked += each.state == Granule::State::stock ? each.pages : 0;
      homes += each.home != 0 ? 1 : 0;
    }
    if (count != stitcher.granules_.count()) return "granules are miscounted";
    if (bytes != stitcher.granule_bytes_) return "bytes of granules are miscounted";
    if (stocked != stitcher.granules_.stock_pages()) return "the stock is miscounted";
    return homes == stitcher.home_.size() ? "" : "the home range lists other granules";
  }

  std::string pool() {
    std::uint64_t lost = stitcher.layout_.home_bytes - places.bytes();
    if (lost != stitcher.lost_home_bytes_) return "addresses of the home range are lost";
    std::map<Address, std::uint64_t> actual;
    for (const Pool::Hole &each : stitcher.pool_.withheld_ranges()) actual.emplace(each.address, each.bytes);
    for (const auto &[address, bytes] : withheld.all()) {
      const auto found = actual.find(address);
      const std::uint64_t offset = address - stitcher.layout_.home;
      if (found == actual.end()) return "the pool does not withhold what is elsewhere, at offset " + number(offset);
      if (found->second != bytes) return "the pool withholds too much or too little at offset " + number(offset);
      actual.erase(found);
    }
    for (const auto &[address, bytes] : actual) lost -= bytes;
    return lost == 0 ? "" : "the pool withholds something for nothing";
  }
};

std::string Stitcher::check_invariants() const {
  Check check{*this, {}, {}, {}, {}};
  std::string wrong = check.gaps();
  if (wrong.empty()) wrong = check.views();
  if (wrong.empty()) wrong = check.granules();
  return wrong.empty() ? check.pool() : wrong;
}

}  // namespace ration::pool::stitch

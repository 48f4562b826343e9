// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/stitch/views.h"

namespace ration::pool::stitch {

View &Views::insert(View &&view) {
  const Address address = view.address;
  View::ByBytes by_bytes{{view.bytes, address}};
  View::ByUse by_use{{0, address}};
  view.by_bytes = by_bytes.extract(by_bytes.begin());
  view.by_use = by_use.extract(by_use.begin());
  View &placed = views_.emplace(address, std::move(view)).first->second;
  count(placed, 1);
  return placed;
}

void Views::erase(Address address) {
  const auto at = views_.find(address);
  if (is_unused(at->second.state)) change(at->second, View::State::mapping);
  count(at->second, ~std::uint64_t{0});
  views_.erase(at);
}

View *Views::find(Address address, View::State state) {
  const auto at = views_.find(address);
  return at == views_.end() || at->second.state != state ? nullptr : &at->second;
}

const View *Views::around(Address address) const {
  auto at = views_.upper_bound(address);
  if (at == views_.begin()) return nullptr;
  --at;
  const View &view = at->second;
  return view.state == View::State::live && address - view.address < view.bytes ? &view : nullptr;
}

// Adds the view to the counters (`sign` is 1) or subtracts it (`sign` is -1).
void Views::count(const View &view, std::uint64_t sign) {
  switch (view.state) {
    case View::State::mapping:
      break;
    case View::State::live:
      live_bytes_ += sign * view.bytes;
      live_ += sign;
      break;
    case View::State::retired:
      retired_bytes_ += sign * view.bytes;
      retired_ += sign;
      break;
    case View::State::resting:
      resting_bytes_ += sign * view.bytes;
      break;
    case View::State::dormant:
      dormant_mappings_ += sign * view.granules.size();
      break;
  }
}

void Views::change(View &view, View::State state) {
  if (is_unused(view.state)) {
    Unused &was = unused_[place_of(view.state)];
    view.by_use = was.by_use.extract(view.used);
    const auto [from, to] = was.by_bytes.equal_range(view.bytes);
    for (auto at = from; at != to; ++at) {
      if (at->second != view.address) continue;
      view.by_bytes = was.by_bytes.extract(at);
      break;
    }
  }
  count(view, ~std::uint64_t{0});
  view.state = state;
  count(view, 1);
  if (is_unused(state)) {
    Unused &now = unused_[place_of(state)];
    view.used = ++uses_;
    view.by_use.key() = view.used;
    view.by_bytes.key() = view.bytes;
    now.by_use.insert(std::move(view.by_use));
    now.by_bytes.insert(std::move(view.by_bytes));
  }
}

View *Views::oldest(View::State state) {
  const View::ByUse &by_use = unused_[place_of(state)].by_use;
  return by_use.empty() ? nullptr : &views_.find(by_use.begin()->second)->second;
}

}  // namespace ration::pool::stitch

// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/stitch/granules.h"

namespace ration::pool::stitch {

GranuleId Granules::add(std::uint64_t pages) {
  if (spare_.empty()) {
    spare_.reserve(table_.size() + 1);  // so that remove() needs no host memory
    nodes_.reserve(table_.size() + 1);
    table_.emplace_back();
    nodes_.emplace_back();
    spare_.push_back(static_cast<GranuleId>(table_.size() - 1));
  }
  const GranuleId id = spare_.back();
  nodes_[id] = stock_.extract(stock_.emplace(pages, id).first);
  spare_.pop_back();
  table_[id] = Granule{};
  table_[id].pages = pages;
  table_[id].state = Granule::State::transit;
  ++count_;
  return id;
}

void Granules::remove(GranuleId id) {
  table_[id] = Granule{};
  nodes_[id] = {};
  spare_.push_back(id);
  --count_;
}

void Granules::resize(GranuleId id, std::uint64_t pages) {
  table_[id].pages = pages;
  nodes_[id].value().first = pages;
}

void Granules::put(GranuleId id) {
  stock_.insert(std::move(nodes_[id]));
  table_[id].state = Granule::State::stock;
  stock_pages_ += table_[id].pages;
}

void Granules::take(GranuleId id) {
  nodes_[id] = stock_.extract({table_[id].pages, id});
  table_[id].state = Granule::State::transit;
  stock_pages_ -= table_[id].pages;
}

GranuleId Granules::largest_within(std::uint64_t pages) const {
  const auto after = stock_.lower_bound({pages + 1, 0});
  return after == stock_.begin() ? 0 : std::prev(after)->second;
}

GranuleId Granules::smallest_above(std::uint64_t pages) const {
  const auto found = stock_.lower_bound({pages + 1, 0});
  return found == stock_.end() ? 0 : found->second;
}

}  // namespace ration::pool::stitch

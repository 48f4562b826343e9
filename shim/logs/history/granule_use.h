// Tracks the granules of physical memory that hold the blocks of a device's pools, as blocks come and go. Layer: logs.
// Values.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace ration::logs {

class GranuleUse {
 public:
  // Notes that the driver provided a granule of `bytes`. The smallest size counts. Ignored after the first block.
  void note_granule(std::uint64_t bytes) {
    if (!has_begun_ && bytes != 0 && (granule_ == 0 || bytes < granule_)) {
      granule_ = bytes;
    }
  }
  std::uint64_t granule_bytes() const { return granule_ != 0 ? granule_ : kUsualGranule; }

  void add(std::uint64_t address, std::uint64_t bytes) {
    has_begun_ = true;
    const Span span = span_of(address, bytes);
    ++ends_[span.first];
    if (span.last != span.first) {
      ++ends_[span.last];
      inner_ += span.last - span.first - 1;
    }
  }
  // REQUIRES: this block was added.
  void remove(std::uint64_t address, std::uint64_t bytes) {
    const Span span = span_of(address, bytes);
    leave(span.first);
    if (span.last != span.first) {
      leave(span.last);
      inner_ -= span.last - span.first - 1;
    }
  }
  // The total bytes of the granules that hold any part of a block.
  std::uint64_t bytes() const { return (ends_.size() + inner_) * granule_bytes(); }

 private:
  static constexpr std::uint64_t kUsualGranule = 2U << 20U;

  struct Span {
    std::uint64_t first, last;
  };
  Span span_of(std::uint64_t address, std::uint64_t bytes) const {
    return {address / granule_bytes(), (address + (bytes != 0 ? bytes - 1 : 0)) / granule_bytes()};
  }
  void leave(std::uint64_t granule) {
    const auto found = ends_.find(granule);
    if (found != ends_.end() && --found->second == 0) {
      ends_.erase(found);
    }
  }

  bool has_begun_ = false;
  std::uint64_t granule_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> ends_;  // by granule: how many blocks begin or end in it
  std::uint64_t inner_ = 0;                                // the number of granules that lie inside a single block
};

}  // namespace ration::logs

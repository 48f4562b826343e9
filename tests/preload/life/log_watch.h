// Follows a log while it is being written, to learn which memory is held. The journal writes each record before the
// call returns.
// Layer: none; reads only the file. Threads: one. Sizes in bytes, as the device rounds them: to 512.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace preload {

inline constexpr std::uint64_t kGranule = 512;
inline constexpr std::uint64_t kPage = 2 << 20;  // page size of the device's memory

// The most memory that a block of granules takes: whole pages, plus one page if it begins within a page.
constexpr std::uint64_t in_pages(std::uint64_t bytes) {
  return ((bytes + kPage - 1) / kPage + 1) * kPage;
}

constexpr std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

class LogWatch {
 public:
  struct Extent {
    std::uint64_t bytes;
    int device;
    unsigned context;  // number of the context
    bool pool;         // a block in a slab; the device already holds the slab's memory
    bool granule;      // the address is a handle
  };
  using Extents = std::map<std::uint64_t, Extent>;  // by address

  explicit LogWatch(const std::string &path) : path_(path) {}

  // Reads the lines written since the last call.
  void follow();
  std::uint64_t held(int device) const;
  const Extents &slabs() const { return slabs_; }
  const Extents &live() const { return live_; }
  // The number of live blocks outside slabs.
  std::size_t of_driver() const;
  // The largest free piece of a slab of that context.
  std::uint64_t largest_hole(unsigned context) const;
  // The total size of the device's slabs without a live block; for granules, the memory in which no live block can lie.
  std::uint64_t wholly_free(int device) const;
  bool has_granules(int device) const;

 private:
  void add(const nlohmann::json &record);

  const std::string path_;
  std::ifstream file_;
  std::map<int, std::uint64_t> held_;
  Extents slabs_;
  Extents live_;
};

}  // namespace preload

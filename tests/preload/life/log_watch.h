// What a log says is held, followed while it is being written: the journal writes each record before the call returns.
// Layer: none; reads the file alone. Threads: one. Sizes in bytes, as the device rounds them: to 512.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace preload {

inline constexpr std::uint64_t kGranule = 512;

constexpr std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

class LogWatch {
 public:
  struct Extent {
    std::uint64_t bytes;
    int device;
    unsigned context;  // number of the context
    bool pool;         // a block in a slab, which the device holds already
  };
  using Extents = std::map<std::uint64_t, Extent>;  // by address

  explicit LogWatch(const std::string &path) : path_(path) {}

  // Reads what has been written since the last call.
  void follow();
  std::uint64_t held(int device) const;
  const Extents &slabs() const { return slabs_; }
  const Extents &live() const { return live_; }
  // Live blocks that lie in no slab.
  std::size_t of_driver() const;
  // The largest piece of a slab of that context in which nothing is live.
  std::uint64_t largest_hole(unsigned context) const;
  // The sum of the device's slabs in which nothing is live.
  std::uint64_t wholly_free(int device) const;

 private:
  void add(const nlohmann::json &record);

  const std::string path_;
  std::ifstream file_;
  std::map<int, std::uint64_t> held_;
  Extents slabs_;
  Extents live_;
};

}  // namespace preload

// Imitates Ration on one device in mode pool with the default settings and simulated memory. Covers one process, its
// limit, its pools and their quarantine.
// Layer: logs. Threads: none of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "logs/replay/replay.h"
#include "pool/shared_pool.h"

namespace ration::pool::replay {

// When freed memory is reused: as on a device without work, or at once. A real run is somewhere in between.
enum class Reuse { when_collected, at_once };

class ReplayedDevice {
 public:
  struct Block {
    std::uint64_t bytes = 0;  // the bytes charged for the driver's allocation
    Address address = 0;      // 0: an allocation by the driver
  };
  // The bytes that a preallocation may take if `free_bytes` are free.
  static std::uint64_t beyond_headroom(std::uint64_t free_bytes);
  // `total`: the device's memory, of which a preallocation leaves a part free; 0: unknown.
  ReplayedDevice(std::uint64_t limit, std::uint64_t total, Backing backing, std::uint32_t pools, Reuse reuse);
  ~ReplayedDevice();
  ReplayedDevice(const ReplayedDevice &) = delete;
  ReplayedDevice &operator=(const ReplayedDevice &) = delete;

  std::optional<Block> allocate(std::uint32_t pool, std::uint64_t bytes);
  void free(std::uint32_t pool, const Block &block);
  // From now on, memory outside pools takes this many bytes. Returns false, with no change, if there is no room.
  bool set_other(std::uint64_t bytes);

 private:
  class Memory;
  class Growth;
  class Releaser;
  class Merging;
  struct Freed {
    SharedPool *pool;
    Address address;
  };

  [[nodiscard]] std::uint64_t available() const { return limit_ - charged_; }
  [[nodiscard]] std::uint64_t slack() const { return limit_ / 8; }
  [[nodiscard]] std::uint64_t next_bytes(SharedPool &pool, std::uint64_t minimum) const;
  [[nodiscard]] bool is_free_elsewhere(const SharedPool &pool, std::uint64_t bytes) const;
  std::vector<Slab> take(std::uint64_t bytes, std::uint64_t piece_bytes);
  void release(std::uint64_t bytes) { charged_ -= bytes; }
  bool is_due(SharedPool &pool, std::uint64_t bytes) const;
  bool clean();
  std::uint64_t returnable(const SharedPool *asking) const;
  void give_back(std::uint64_t bytes, const SharedPool *asking, std::uint64_t block_bytes);
  bool make_room(std::uint64_t bytes, const SharedPool *asking, std::uint64_t block_bytes);
  [[nodiscard]] std::uint64_t room_beyond_headroom() const;
  void merge(SharedPool &pool, std::uint64_t bytes);
  void preallocate(SharedPool &pool, std::uint64_t bytes);
  std::optional<Block> take_from_driver(std::uint64_t bytes);

  const std::uint64_t limit_, total_, granule_bytes_;
  const bool in_slabs_;
  const Reuse reuse_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::unique_ptr<SharedPool>> pools_;
  std::vector<Freed> freed_;  // freed blocks that are not yet clean
  std::uint64_t freed_bytes_ = 0;
  bool is_preallocated_ = false;
  std::uint64_t charged_ = 0;  // by pools, the driver's own allocations, and other memory
  std::uint64_t other_ = 0;
  std::uint64_t last_id_ = 0;
  Address next_address_;  // of slabs
};

// The bytes charged for a block in mode direct: whole units, except for a block that reaches the limit exactly. `left`:
// the part of the limit that is left.
std::uint64_t charged_for(std::uint64_t bytes, std::uint64_t left, std::uint64_t limit);

}  // namespace ration::pool::replay

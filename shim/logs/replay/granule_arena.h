// A simulated device that consists only of numbered pages, for replays with granules. Counts the driver calls and adds
// up what they would cost. Layer: logs. Threads: as for a pool's upstream; only one thread at a time grows the pool.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "logs/replay/replay.h"
#include "pool/shared_pool.h"

namespace ration::pool::replay {

class GranuleArena final : public Upstream, public stitch::DeviceMemory {
 public:
  static constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;
  // Arbitrary, like all addresses in a replay.
  static constexpr Address kHome = 0x100000000000, kViews = 0x200000000000;
  static constexpr std::uint64_t kViewsBytes = std::uint64_t{1} << 46;

  explicit GranuleArena(std::uint64_t bytes);
  // Gives all memory to the pool, as Ration does when it preallocates.
  void preallocate(SharedPool &pool);
  [[nodiscard]] const DriverCalls &calls() const { return calls_; }
  // Writes the block's pages as ` G0 G1 ...`, in the format of replay().
  void write_pages(std::ostream &out, const SharedPool &pool, const Block &block) const;

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override;
  void release(std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool allow(Address address, std::uint64_t bytes) noexcept override;
  bool unmap(Address address, std::uint64_t bytes) noexcept override;

  stitch::DeviceMemory *memory() noexcept override { return this; }
  bool collect() noexcept override { return false; }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override;
  void shrink(const Slab &slab) noexcept override { release(slab.id, slab.bytes); }
  bool wait() noexcept override { return false; }

 private:
  // Adjacent pages, stored as one run so that an arena of any size needs little memory.
  struct Run {
    std::uint64_t first;
    std::uint64_t count;
  };
  [[nodiscard]] static std::uint64_t page_of(const std::vector<Run> &runs, std::uint64_t page);

  const std::uint64_t bytes_;
  DriverCalls calls_;
  std::vector<Run> free_;  // the last run is given out next
  std::uint64_t free_pages_;
  std::unordered_map<std::uint64_t, std::vector<Run>> handles_;  // the pages behind each handle
  std::map<Address, std::uint64_t> mappings_;                    // the address and size of each mapping
  std::uint64_t last_handle_ = 0;
};

}  // namespace ration::pool::replay

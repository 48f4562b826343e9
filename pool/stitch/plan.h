// What has to be done at the driver before a request can be served: made under the pool's lock, executed without it,
// finished under it.
// Layer: pool, a leaf (standard library only: no CUDA). Threads: a value of one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/stitch/device_memory.h"
#include "pool/stitch/views.h"
#include "pool/unit.h"

namespace ration::pool::stitch {

struct Plan {
  struct Dropped {
    Address view;  // of the block
    Address address;
    std::uint64_t bytes;
    bool done = false;
  };
  struct Part {
    GranuleId granule;
    std::uint64_t handle = 0;
    std::uint64_t bytes = 0;
    bool done = false;
  };
  // A handle cannot be divided: to split it, it is released and several are created.
  struct Release {
    GranuleId granule;
    std::uint64_t handle;
    std::uint64_t bytes;
    Address home;
    std::vector<Part> into;
    bool rest_is_free = true;  // the last of them
    bool done = false;
  };
  // A granule that gets a place in the home range.
  struct Homing {
    GranuleId granule;
    std::uint64_t handle;
    std::uint64_t bytes;
    Address address;
    bool mapped;  // already, or now
    bool usable;  // and with access
  };

  // In the order of their execution.
  std::vector<Dropped> dropped;  // views that nothing will use again
  std::vector<Release> releases;
  std::vector<Homing> homings;
  Address view = 0;  // of the block; 0: none
  Address view_range = 0;
  std::uint64_t view_bytes = 0;
  std::vector<Part> mappings;      // of the view, in order
  bool view_mapped = false;        // and with access
  std::uint64_t mapped_bytes = 0;  // also what the driver refused to take away again
  Address opened = 0;              // the page of the view's tail, in the home range; 0: that page was there

  [[nodiscard]] bool needs_driver() const {
    return !dropped.empty() || !releases.empty() || !homings.empty() || (view != 0 && !view_mapped);
  }
  // Stops at the first refusal of the driver's, and leaves no view half mapped unless the driver refuses that, too.
  void execute(DeviceMemory &memory) noexcept;

 private:
  void carry_out(DeviceMemory &memory) noexcept;
};

}  // namespace ration::pool::stitch

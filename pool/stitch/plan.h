// The driver calls that are needed before a request can be served. A plan is made under the pool's lock, executed
// without it, and finished under it.
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
    Address view;  // address of the view's block
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
  // Releases a handle. A handle cannot be divided: instead, it is released and smaller handles are created.
  struct Release {
    GranuleId granule;
    std::uint64_t handle;
    std::uint64_t bytes;
    Address home;
    std::vector<Part> into;
    bool rest_is_free = true;  // nothing has used the last part yet
    bool done = false;
  };
  // A granule that gets a place in the home range.
  struct Homing {
    GranuleId granule;
    std::uint64_t handle;
    std::uint64_t bytes;
    Address address;
    bool mapped;  // it was already mapped, or execute() has mapped it
    bool usable;  // it is mapped with access
  };

  // The members are in the order of execution.
  std::vector<Dropped> dropped;  // views that will not be used again
  std::vector<Release> releases;
  std::vector<Homing> homings;
  Address view = 0;  // address of the new block; 0: the plan has no view
  Address view_range = 0;
  std::uint64_t view_bytes = 0;
  std::vector<Part> mappings;      // what the view maps, in order
  bool view_mapped = false;        // the whole view is mapped with access
  std::uint64_t mapped_bytes = 0;  // includes mappings that the driver refused to remove
  Address opened = 0;              // the new page in the home range for the view's tail; 0: none is needed

  [[nodiscard]] bool needs_driver() const {
    return !dropped.empty() || !releases.empty() || !homings.empty() || (view != 0 && !view_mapped);
  }
  // Stops when the driver first refuses a call. Then no view stays partly mapped, unless the driver also refuses to
  // unmap it.
  void execute(DeviceMemory &memory) noexcept;

 private:
  void carry_out(DeviceMemory &memory) noexcept;
};

}  // namespace ration::pool::stitch

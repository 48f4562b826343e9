// What a pool that must grow asks of everything else that holds memory of its device.
// Layer: policy/block_pool. Threads: any; never called under a lock. Implemented in policy/calls (room_maker.h).
#pragma once

#include <cstdint>

namespace ration::policy {

class ContextPool;

class Room {
 public:
  struct Need {
    const char *api;
    int device;
    std::uint64_t bytes;                  // to reserve
    const ContextPool *asking = nullptr;  // this pool keeps its slabs where it has a hole for `block_bytes`
    std::uint64_t block_bytes = 0;
    std::uint64_t begun_ns = 0;  // of the call; 0: now
  };
  // Whether to wait for the device, for kIdlePatienceNs at most. REQUIRES of `briefly`: other threads wait for nothing
  // that this thread holds.
  enum class Patience { none, briefly };
  // Makes the bytes reservable in the device's account. False: nothing that is left would make them so.
  virtual bool make_room(const Need &need, Patience patience) noexcept = 0;
  // Returns to the driver all that is wholly free, if the device is idle. False: nothing was.
  virtual bool give_back(const Need &need, Patience patience) noexcept = 0;
  // Returns so much of what is free, from whatever holds it, or what there is. Waits for nothing. False: nothing was.
  virtual bool give_away(const char *api, int device, std::uint64_t bytes) noexcept = 0;

 protected:
  ~Room() = default;
};

}  // namespace ration::policy

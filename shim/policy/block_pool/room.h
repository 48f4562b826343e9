// What a pool that must grow asks of everything else that holds memory of its device.
// Layer: policy/block_pool. Threads: any; never called under a lock. Implemented in policy/calls (room_maker.h).
#pragma once

#include <cstdint>

namespace ration::policy {

class Room {
 public:
  // Makes `bytes` reservable in the device's account. False: nothing that is left would make them so.
  virtual bool make_room(const char *api, int device, std::uint64_t bytes) noexcept = 0;
  // Returns to the driver all that is wholly free. False: nothing was.
  virtual bool give_back(const char *api, int device) noexcept = 0;

 protected:
  ~Room() = default;
};

}  // namespace ration::policy

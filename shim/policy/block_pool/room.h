// The interface through which a pool that must grow asks all other holders of its device's memory for room.
// Layer: policy/block_pool. Threads: any; never called under a lock. Implemented in policy/calls (room_maker.h).
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace ration::policy {

class ContextPool;

class Room {
 public:
  struct Need {
    const char *api;
    int device;
    std::uint64_t bytes;                  // to reserve
    const ContextPool *asking = nullptr;  // keeps its granules, and its slabs once a hole holds `block_bytes`
    std::uint64_t block_bytes = 0;
    std::uint64_t begun_ns = 0;  // when the call began; 0: now
  };
  // Whether to wait for the device, for at most kIdlePatienceNs. REQUIRES, for `briefly`: no other thread waits for
  // anything that this thread holds.
  enum class Patience { none, briefly };
  // Limits how often and for how long a request tries again because others took its room first.
  class Retries {
   public:
    bool allow() noexcept {
      begun_ns_ = begun_ns_ != 0 ? begun_ns_ : now_ns();
      return ++count_ <= kMost && now_ns() - begun_ns_ < kLongestNs;
    }

   private:
    static constexpr int kMost = 20;
    static constexpr std::uint64_t kLongestNs = 1'000'000'000;
    int count_ = 0;
    std::uint64_t begun_ns_ = 0;
  };
  // Makes room for the bytes in the device's account. Returns false if there is not enough memory to make that room.
  virtual bool make_room(const Need &need, Patience patience) noexcept = 0;
  // If the device is idle, gives the driver back everything that is wholly free. With `briefly`, then asks others for
  // memory that the device still lacks. Returns true if memory came back, or if the device by now has enough free
  // memory, of which others may take some.
  virtual bool give_back(const Need &need, Patience patience) noexcept = 0;
  // Gives back `bytes` of free memory, or as much as there is, from whatever holds it. Does not wait. Returns false if
  // there was none.
  virtual bool give_away(const char *api, int device, std::uint64_t bytes) noexcept = 0;

 protected:
  ~Room() = default;
};

}  // namespace ration::policy

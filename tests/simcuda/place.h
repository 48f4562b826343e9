// Locates the bytes of a copy or a fill and checks that all of them exist. Layer: driver.h.
// Threads: under Driver::mutex; the bytes stay mapped forever, so stream work may use them without the mutex.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

struct Place {
  enum class Kind { kNowhere, kDevice, kManaged, kPinned, kPageable };
  Kind kind = Kind::kNowhere;
  std::byte *bytes = nullptr;
  bool marked = false;  // SYNC_MEMOPS
  bool on_host() const { return kind != Kind::kDevice; }
  bool waits() const { return on_host() || marked; }  // for a synchronous copy or fill
};

// The memory that work may touch: memory that exists now, or also memory that a graph allocates before the work runs.
enum class Reach : unsigned char { kNow, kInGraph };
inline Reach reach_of(const Stream &stream) {
  return stream.capture == nullptr ? Reach::kNow : Reach::kInGraph;
}

// Device, managed or pinned memory that holds [address, address + bytes) in one live block, or in adjacent mappings
// that the context's device may access; kNowhere otherwise.
Place device_place(const Context &context, Use use, Reach reach, std::uint64_t address, std::uint64_t bytes);
// The same, but also accepts program memory that the driver does not track: any address outside the devices' ranges.
Place any_place(const Context &context, Use use, Reach reach, std::uint64_t address, std::uint64_t bytes);

}  // namespace simcuda

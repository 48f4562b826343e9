// Where the bytes of a copy or a fill lie, and whether all of them are there. Layer: driver.h.
// Threads: under Driver::mutex; the bytes stay mapped for ever, so work in a stream may use them without it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tests/simcuda/driver.h"

namespace simcuda {

struct Place {
  enum class Kind { kNowhere, kDevice, kManaged, kPinned, kPageable };
  Kind kind = Kind::kNowhere;
  std::byte *bytes = nullptr;
  bool on_host() const { return kind != Kind::kDevice; }
};

// Device, managed or pinned memory that holds [address, address + bytes) in one live block, or in mappings side by side
// that the context's device may use so; kNowhere else.
Place device_place(const Context &context, Use use, std::uint64_t address, std::uint64_t bytes);
// The same, or memory of the program that we know nothing about: any address but a device's.
Place any_place(const Context &context, Use use, std::uint64_t address, std::uint64_t bytes);

}  // namespace simcuda

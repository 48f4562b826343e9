#include "tests/preload/life/claims.h"

#include <algorithm>
#include <iterator>

#include "simcuda/simcuda.h"

namespace preload {
namespace {

// The bytes that the simulated device reports as held.
std::uint64_t device_holds(int device) {
  simcuda_books books{};
  return simcuda_device_books(device, &books) == 0 ? books.allocation_bytes + books.physical_bytes : UINT64_MAX;
}

}  // namespace

std::string Claims::hold(std::size_t blocks) {
  watch_.follow();
  for (int device = 0; device < devices(); ++device) {
    const std::uint64_t reported = watch_.held(device);
    const std::uint64_t held = device_holds(device);
    if (reported != held) {
      return "device " + std::to_string(device) + " holds " + std::to_string(held) + ", the log says " +
             std::to_string(reported);
    }
    // An allocation by the driver is charged as requested, and the device rounds it up.
    if (held > limit(device) + watch_.of_driver() * kGranule) {
      return "device " + std::to_string(device) + " holds " + std::to_string(held) + ", more than the limit";
    }
  }
  return watch_.live().size() == blocks
             ? ""
             : std::to_string(blocks) + " blocks, the log says " + std::to_string(watch_.live().size());
}

std::string Claims::handed_out(std::uint64_t address, std::uint64_t bytes, int device) {
  watch_.follow();
  const auto &live = watch_.live();
  const auto entry = live.find(address);
  if (entry == live.end() || entry->second.bytes != rounded(bytes) || entry->second.device != device) {
    return "a block that the log does not tell";
  }
  const auto next = std::next(entry);
  if (next != live.end() && address + entry->second.bytes > next->first) {
    return "it reaches into the next block";
  }
  if (entry != live.begin() && std::prev(entry)->first + std::prev(entry)->second.bytes > address) {
    return "it begins in the block before";
  }
  return address % kGranule == 0 ? "" : "an address that no block may have";
}

std::string Claims::rightly_refused(unsigned context, int device, std::uint64_t bytes) {
  watch_.follow();
  const std::uint64_t hole = context != 0 ? watch_.largest_hole(context) : 0;
  if (hole >= rounded(bytes)) {
    return "refused " + std::to_string(bytes) + " bytes beside a hole of " + std::to_string(hole);
  }
  const std::uint64_t held = watch_.held(device) - watch_.wholly_free(device);
  const std::uint64_t room = limit(device) - std::min(held, limit(device));
  const std::uint64_t needed = watch_.has_granules(device) ? in_pages(bytes) : rounded(bytes);
  return room < needed ? "" : "refused " + std::to_string(bytes) + " bytes with room for " + std::to_string(room);
}

}  // namespace preload

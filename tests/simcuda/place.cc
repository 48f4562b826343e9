#include "tests/simcuda/place.h"

#include "tests/simcuda/graph_memory.h"

namespace simcuda {

Place device_place(const Context &context, Use use, Reach reach, std::uint64_t address, std::uint64_t bytes) {
  if (const auto found = allocation_at(address); found != driver().allocations.end()) {
    if (bytes > found->second.requested - (address - found->first)) return {};
    return {found->second.managed == nullptr ? Place::Kind::kDevice : Place::Kind::kManaged, view_of(address),
            found->second.sync_memops};
  }
  if (const auto found = host_block_at(address); found != driver().host_blocks.end()) {
    if (bytes > found->second.bytes - (address - found->first)) return {};
    return {Place::Kind::kPinned, reinterpret_cast<std::byte *>(address)};
  }
  if (const GraphBlock *block = graph_block_at(address); block != nullptr && reach == Reach::kInGraph) {
    if (bytes > block->requested - (address - block->address)) return {};
    return {Place::Kind::kDevice, view_of(address)};
  }
  if (reachable(*context.device, use, address, bytes)) {
    const bool host = mapped_at(address)->mapping->memory->on_host();
    return {host ? Place::Kind::kPinned : Place::Kind::kDevice, view_of(address)};
  }
  return {};
}

Place any_place(const Context &context, Use use, Reach reach, std::uint64_t address, std::uint64_t bytes) {
  const Place place = device_place(context, use, reach, address, bytes);
  const bool known = place.kind != Place::Kind::kNowhere || allocation_at(address) != driver().allocations.end() ||
                     host_block_at(address) != driver().host_blocks.end();
  if (known || address == 0 || view_of(address) != nullptr) return place;
  return {Place::Kind::kPageable, reinterpret_cast<std::byte *>(address)};
}

}  // namespace simcuda

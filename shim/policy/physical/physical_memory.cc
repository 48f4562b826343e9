#include "policy/physical/physical_memory.h"

#include <iterator>

namespace ration::policy {

void PhysicalMemory::created(const Piece &piece) {
  const auto made = std::make_shared<Piece>(piece);
  made->holds_ = 1;
  Guard guard(mutex_);
  handles_[piece.handle] = {made, 1};
}

// Removes the handle before the driver's call, after which another thread's cuMemCreate may get the same handle.
PhysicalMemory::PieceRef PhysicalMemory::begin_release(CUmemGenericAllocationHandle handle) {
  Guard guard(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    return nullptr;
  }
  PieceRef piece = found->second.piece;
  if (--found->second.references == 0) {
    handles_.erase(found);
  }
  return piece;
}

PhysicalMemory::PieceRef PhysicalMemory::hold_at(CUdeviceptr address) {
  Guard guard(mutex_);
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) {
    return nullptr;
  }
  const Mapping &mapping = std::prev(after)->second;
  if (address - mapping.address >= mapping.bytes) {
    return nullptr;
  }
  ++mapping.piece->holds_;
  return mapping.piece;
}

PhysicalMemory::PieceRef PhysicalMemory::hold(CUmemGenericAllocationHandle handle) {
  Guard guard(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    return nullptr;
  }
  ++found->second.piece->holds_;
  return found->second.piece;
}

void PhysicalMemory::retained(CUmemGenericAllocationHandle handle, const PieceRef &piece) noexcept try {
  Guard guard(mutex_);
  Handle &entry = handles_[handle];
  entry.piece = piece;
  ++entry.references;
} catch (...) {  // as the header says
}

void PhysicalMemory::mapped(CUdeviceptr address, std::uint64_t bytes, const PieceRef &piece) noexcept try {
  Guard guard(mutex_);
  mappings_[address] = {address, bytes, piece};
} catch (...) {  // as the header says
}

std::vector<PhysicalMemory::Mapping> PhysicalMemory::begin_unmap(CUdeviceptr address, std::uint64_t bytes) {
  std::vector<Mapping> taken;
  Guard guard(mutex_);
  const auto first = mappings_.lower_bound(address);
  auto last = first;
  while (last != mappings_.end() && last->first - address < bytes && last->second.bytes <= bytes &&
         last->first - address <= bytes - last->second.bytes) {
    taken.push_back(last->second);
    ++last;
  }
  mappings_.erase(first, last);
  return taken;
}

void PhysicalMemory::deferred_made(std::uint64_t array) noexcept try {
  Guard guard(mutex_);
  deferred_.insert(array);
} catch (...) {  // its regions are taken as described; at worst they stay held until the array ends
}

void PhysicalMemory::array_mapped(const CUarrayMapInfo &entry, const PieceRef &piece, Lost &lost) noexcept try {
  Guard guard(mutex_);
  const ArrayRegion region = ArrayRegion::of(entry, deferred_.contains(ArrayRegion::array_of(entry)));
  SparseRegions<PieceRef>::Change change = regions_.place(region, piece);
  for (const PieceRef &gained : change.gained) {
    ++gained->holds_;
  }
  if (piece != nullptr) {
    --piece->holds_;  // the hold that became the region's mapping
  }
  lost.insert(lost.end(), change.lost.begin(), change.lost.end());
} catch (...) {  // as the header says
}

PhysicalMemory::Lost PhysicalMemory::array_gone(std::uint64_t array) noexcept try {
  Guard guard(mutex_);
  deferred_.erase(array);
  return regions_.forget(array).lost;
} catch (...) {  // as the header says
  return {};
}

bool PhysicalMemory::drop(const PieceRef &piece) {
  Guard guard(mutex_);
  return --piece->holds_ == 0;
}

}  // namespace ration::policy

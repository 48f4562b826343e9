// Physical memory that the program allocates apart from its addresses (cuMemCreate, cuMemMap): what keeps it alive.
// Layer: policy/physical. Threads: any; no driver call under the lock. Owns: nothing of the driver's.
//
// It exists until its last handle is released and its last mapping undone, in any order (cuda.h, cuMemRelease); a
// region of a sparse array is such a mapping. A hold is taken before the driver call that needs it and dropped after
// the one that ends it, so memory never counts as gone while the driver still has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/lock.h"
#include "driver/functions.h"
#include "policy/physical/sparse_regions.h"

namespace ration::policy {

// Design: design/charging.md#physical-memory
class PhysicalMemory {
 public:
  struct Piece {
    CUmemGenericAllocationHandle handle = 0;  // of its creation
    std::uint64_t bytes = 0;
    int device = 0;
    bool charged = true;

   private:
    friend class PhysicalMemory;
    std::uint64_t holds_ = 0;  // references of handles, and mappings
  };
  using PieceRef = std::shared_ptr<Piece>;

  // The driver has created it: one reference. Throws bad_alloc.
  void created(const Piece &piece);

  // A reference is being released. nullptr: not one of ours.
  PieceRef begin_release(CUmemGenericAllocationHandle handle);
  // A hold on the piece that is mapped at an address, or has a handle, before the driver adds a reference. nullptr: not
  // ours.
  PieceRef hold_at(CUdeviceptr address);
  PieceRef hold(CUmemGenericAllocationHandle handle);
  // The driver added a reference, perhaps under another handle, or kept one, or mapped the piece: the hold becomes
  // that. Without memory of the host the piece stays held for good: never too low.
  void retained(CUmemGenericAllocationHandle handle, const PieceRef &piece) noexcept;
  void mapped(CUdeviceptr address, std::uint64_t bytes, const PieceRef &piece) noexcept;

  // Takes the mappings wholly inside a range out of the table until the driver has answered.
  struct Mapping {
    CUdeviceptr address;
    std::uint64_t bytes;
    PieceRef piece;
  };
  std::vector<Mapping> begin_unmap(CUdeviceptr address, std::uint64_t bytes);

  // A region of a sparse array now lies on a piece (nullptr: on none of ours), and the hold becomes that mapping.
  // `lost` gets a piece once for each region that it lost, with a hold that the caller drops when the device has undone
  // the mapping. Without memory of the host pieces stay held for good: never too low.
  using Lost = std::vector<PieceRef>;
  void deferred_made(std::uint64_t array) noexcept;
  void array_mapped(const CUarrayMapInfo &entry, const PieceRef &piece, Lost &lost) noexcept;
  Lost array_gone(std::uint64_t array) noexcept;

  // True: that was the last hold, and the memory is gone.
  bool drop(const PieceRef &piece);

 private:
  struct Handle {
    PieceRef piece;
    std::uint64_t references = 0;
  };
  RankedMutex mutex_{Rank::kPhysicalMemory};
  std::unordered_map<CUmemGenericAllocationHandle, Handle> handles_ GUARDED_BY(mutex_);
  std::map<CUdeviceptr, Mapping> mappings_ GUARDED_BY(mutex_);
  SparseRegions<PieceRef> regions_ GUARDED_BY(mutex_);
  std::unordered_set<std::uint64_t> deferred_ GUARDED_BY(mutex_);  // arrays that are mapped as a whole
};

}  // namespace ration::policy

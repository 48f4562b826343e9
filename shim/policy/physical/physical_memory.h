// Tracks what keeps alive the physical memory that the program allocates separately from addresses (cuMemCreate,
// cuMemMap). Layer: policy/physical. Threads: any; no driver call under the lock. Owns: nothing of the driver.
//
// Such memory exists until its last handle is released and its last mapping is undone, in any order (cuda.h,
// cuMemRelease). A region of a sparse array is such a mapping. A hold stands for one such handle reference or mapping.
// The hold is taken before the driver call that creates the reference or mapping, and dropped after the call that ends
// it, so memory never counts as gone while the driver still has it.
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
    CUmemGenericAllocationHandle handle = 0;  // the handle that cuMemCreate returned
    std::uint64_t bytes = 0;
    int device = 0;
    bool charged = true;

   private:
    friend class PhysicalMemory;
    std::uint64_t holds_ = 0;  // number of handle references and mappings
  };
  using PieceRef = std::shared_ptr<Piece>;

  // Adds a piece that the driver has created, with one reference. Throws bad_alloc.
  void created(const Piece &piece);

  // Removes a reference that is about to be released. Returns nullptr if the handle is not known.
  PieceRef begin_release(CUmemGenericAllocationHandle handle);
  // Takes a hold on the piece that is mapped at `address`, or has `handle`, before the driver adds a reference or a
  // mapping. Returns nullptr if there is no such piece.
  PieceRef hold_at(CUdeviceptr address);
  PieceRef hold(CUmemGenericAllocationHandle handle);
  // Called when the driver has added or kept a reference (retained(), perhaps under another handle), or has mapped the
  // piece. The hold becomes that reference or mapping. If host memory has run out, the piece stays held for ever, so
  // the charge is never too low.
  void retained(CUmemGenericAllocationHandle handle, const PieceRef &piece) noexcept;
  void mapped(CUdeviceptr address, std::uint64_t bytes, const PieceRef &piece) noexcept;

  // Takes the mappings that are wholly inside a range out of the table. Called before the driver unmaps them.
  struct Mapping {
    CUdeviceptr address;
    std::uint64_t bytes;
    PieceRef piece;
  };
  std::vector<Mapping> begin_unmap(CUdeviceptr address, std::uint64_t bytes);

  // array_mapped(): a region of a sparse array is now mapped to a piece (nullptr: to no known piece), and the hold
  // becomes that mapping. Each piece is added to `lost` once for each region that it lost, with a hold that the caller
  // drops when the device has undone the mapping. If host memory has run out, pieces stay held for ever, so the charge
  // is never too low.
  using Lost = std::vector<PieceRef>;
  void deferred_made(std::uint64_t array) noexcept;
  void array_mapped(const CUarrayMapInfo &entry, const PieceRef &piece, Lost &lost) noexcept;
  Lost array_gone(std::uint64_t array) noexcept;

  // Drops a hold. Returns true if it was the last hold, so that the memory is gone.
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
  std::unordered_set<std::uint64_t> deferred_ GUARDED_BY(mutex_);  // arrays that can only be mapped as a whole
};

}  // namespace ration::policy

// Physical memory that the program allocates apart from its addresses (cuMemCreate, cuMemMap): what keeps it alive.
// Layer: policy. Threads: any; no driver call under the lock. Owns: nothing of the driver's.
//
// It is there until its last handle was released and its last mapping undone, in whatever order (cuda.h, cuMemRelease);
// a region of a sparse array is such a mapping.
// Every hold is taken before the driver's call that needs it and dropped after the one that ends it, so that memory is
// never thought to be gone while the driver still has it.
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

class PhysicalMemory {
 public:
  struct Piece {
    CUmemGenericAllocationHandle handle = 0;  // that it was made with
    std::uint64_t bytes = 0;
    int device = 0;
    bool charged = true;

   private:
    friend class PhysicalMemory;
    std::uint64_t holds_ = 0;  // references of handles, and mappings
  };
  using PieceRef = std::shared_ptr<Piece>;

  // The driver just made it: one reference. Throws bad_alloc.
  void created(const Piece &piece);

  // A reference goes. nullptr: not one of ours.
  PieceRef begin_release(CUmemGenericAllocationHandle handle);
  void cancel_release(CUmemGenericAllocationHandle handle, const PieceRef &piece);
  // A hold on what is mapped at an address, or has a handle, before the driver is asked for one more. nullptr: not
  // ours.
  PieceRef hold_at(CUdeviceptr address);
  PieceRef hold(CUmemGenericAllocationHandle handle);
  // The driver gave one more reference, perhaps under another handle; or mapped it. The hold becomes that. Without
  // memory of the host the piece stays held for good: never too low.
  void retained(CUmemGenericAllocationHandle handle, const PieceRef &piece) noexcept;
  void mapped(CUdeviceptr address, std::uint64_t bytes, const PieceRef &piece) noexcept;

  // What is mapped wholly between two addresses, out of the table until the driver answered.
  struct Mapping {
    CUdeviceptr address;
    std::uint64_t bytes;
    PieceRef piece;
  };
  std::vector<Mapping> begin_unmap(CUdeviceptr address, std::uint64_t bytes);
  void cancel_unmap(const std::vector<Mapping> &mappings) noexcept;

  // Arrays that are mapped piece by piece: a region lies on a piece from now on (nullptr: on none of ours), whose hold
  // becomes that. Each piece that lost a region is in `lost` as often, with a hold that the caller drops when the
  // device has let go of it. Without memory of the host pieces stay held for good: never too low.
  using Lost = std::vector<PieceRef>;
  void deferred_made(std::uint64_t array) noexcept;
  void array_mapped(const CUarrayMapInfo &entry, const PieceRef &piece, Lost &lost) noexcept;
  Lost array_gone(std::uint64_t array) noexcept;

  // True: it was the last hold; the memory is gone.
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

// Handles physical memory whose handle is separate from its addresses (cuMemCreate, cuMemMap, cuMemMapArrayAsync). The
// memory is charged to its device until its last handle is released and its last mapping is undone.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "ledger/ledger.h"
#include "policy/devices/request.h"
#include "policy/physical/pending_frees.h"
#include "policy/physical/physical_memory.h"

namespace ration::policy {

struct CallParts;

class MappedMemory final : public PendingFrees::PieceOwner {
 public:
  explicit MappedMemory(const CallParts &parts) : parts_(parts) {}

  CUresult create(Request request, const CUmemLocation &location, Act act, Undo undo,
                  CUmemGenericAllocationHandle *handle);
  CUresult release(const char *api, CUmemGenericAllocationHandle handle, DriverCall call);
  CUresult retain(const char *api, CUdeviceptr address, CUmemGenericAllocationHandle *handle, DriverCall call);
  CUresult map(const char *api, CUdeviceptr address, std::uint64_t bytes, CUmemGenericAllocationHandle handle,
               DriverCall call);
  CUresult unmap(const char *api, CUdeviceptr address, std::uint64_t bytes, DriverCall call);
  // Refuses a pool's block, because the program did not map the block's granule, which also holds other blocks.
  CUresult set_access(CUdeviceptr address, DriverCall call);
  // Maps and unmaps regions of sparse arrays, in the order of `stream`.
  CUresult map_arrays(const CUarrayMapInfo *entries, std::size_t count, CUstream stream, DriverCall call);

  // Called when an array got this handle. Whatever an earlier array with the same handle had mapped was unmapped with
  // that array.
  void array_made(const char *api, std::uint64_t array, bool deferred);
  void array_gone(const char *api, std::uint64_t array);
  void end_piece(const char *api, const PhysicalMemory::PieceRef &piece) override;

 private:
  ledger::Changes *changes_of(const PhysicalMemory::PieceRef &piece);
  // Runs `call` with a hold on `piece`. On success, `keep` keeps the hold; otherwise the hold is dropped.
  template <class Keep>
  CUresult with_hold(const char *api, const PhysicalMemory::PieceRef &piece, DriverCall call, const Keep &keep);

  const CallParts &parts_;
  PhysicalMemory physical_;
};

}  // namespace ration::policy

// Physical memory that has a handle and addresses apart (cuMemCreate, cuMemMap, cuMemMapArrayAsync): charged to the
// device that it lies on until its last handle is released and its last mapping undone.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/admission.h"
#include "policy/imports/ipc_importer.h"
#include "policy/physical/pending_frees.h"
#include "policy/physical/physical_memory.h"

namespace ration::policy {

class MappedMemory final : public PendingFrees::PieceOwner {
 public:
  MappedMemory(Devices &devices, Contexts &contexts, ledger::Ledger &ledger, events::Journal &journal, Books &books,
               BlockPools &pools, PendingFrees &pending, Admission &admission, IpcImporter &imports)
      : devices_(devices),
        contexts_(contexts),
        ledger_(ledger),
        journal_(journal),
        books_(books),
        pools_(pools),
        pending_(pending),
        admission_(admission),
        imports_(imports) {}

  CUresult create(Request request, const CUmemLocation &location, Act act, Undo undo,
                  CUmemGenericAllocationHandle *handle);
  CUresult release(const char *api, CUmemGenericAllocationHandle handle, DriverCall call);
  CUresult retain(const char *api, CUdeviceptr address, CUmemGenericAllocationHandle *handle, DriverCall call);
  CUresult map(const char *api, CUdeviceptr address, std::uint64_t bytes, CUmemGenericAllocationHandle handle,
               DriverCall call);
  CUresult unmap(const char *api, CUdeviceptr address, std::uint64_t bytes, DriverCall call);
  // A block of a pool is no mapping of the program's, and its granule holds other blocks, too.
  CUresult set_access(CUdeviceptr address, DriverCall call);
  // Regions of sparse arrays, mapped and unmapped in the order of `stream`.
  CUresult map_arrays(const CUarrayMapInfo *entries, std::size_t count, CUstream stream, DriverCall call);

  // An array has this handle now: whatever an array before it had mapped has gone with that one.
  void array_made(const char *api, std::uint64_t array, bool deferred);
  void array_gone(const char *api, std::uint64_t array);
  void end_piece(const char *api, const PhysicalMemory::PieceRef &piece) override;

 private:
  ledger::Changes *changes_of(const PhysicalMemory::PieceRef &piece);
  // `call` with a hold on `piece`: kept by `keep` on success, else dropped.
  template <class Keep>
  CUresult with_hold(const char *api, const PhysicalMemory::PieceRef &piece, DriverCall call, const Keep &keep);

  Devices &devices_;
  Contexts &contexts_;
  ledger::Ledger &ledger_;
  events::Journal &journal_;
  Books &books_;
  BlockPools &pools_;
  PendingFrees &pending_;
  Admission &admission_;
  IpcImporter &imports_;
  PhysicalMemory physical_;
};

}  // namespace ration::policy

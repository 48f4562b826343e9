// Memory that has a handle and addresses apart: the half of Policy behind cuMemCreate, cuMemMap, cuMemMapArrayAsync.
// Layer: policy.
#include "policy/calls/policy.h"

namespace ration::policy {

void Policy::end_piece(const char *api, const PhysicalMemory::PieceRef &piece) {
  if (!physical_.drop(piece)) {
    return;
  }
  events::Free event{piece->handle, piece->bytes, piece->device, 0, api};
  event.kind = piece->charged ? events::Kind::vmm : events::Kind::host;
  event.charged = piece->charged;
  journal_.record(event);
  if (piece->charged) {
    ledger_.account(piece->device).release(piece->bytes);
    pools_.tell_changes(piece->device);
  }
}

CUresult Policy::create_physical(Request request, const CUmemLocation &location, const Act &act, const Undo &undo,
                                 CUmemGenericAllocationHandle *handle) {
  describe();
  request.charged = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  request.kind = request.charged ? events::Kind::vmm : events::Kind::host;
  if (request.charged && devices_.limit_unknown()) {
    return refuse_unknown(act, undo);
  }
  // Where it lies, not what is current. A device that is not there is the driver's to refuse, however full the others
  // are.
  if (request.charged && devices_.all() != nullptr && devices_.find(location.id) == nullptr) {
    return refuse_unknown(act, undo);
  }
  const int device = request.charged && devices_.find(location.id) != nullptr ? location.id : 0;
  const Contexts::Current where{nowhere_, device, CUDA_SUCCESS};
  Obtained obtained;
  const CUresult result = request.charged ? admit(request, where, act, undo, obtained) : act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  try {
    PhysicalMemory::Piece piece;
    piece.handle = obtained.address;
    piece.bytes = obtained.bytes;
    piece.device = device;
    piece.charged = request.charged;
    physical_.created(piece);
  } catch (...) {
    if (undo(obtained.address) == CUDA_SUCCESS && request.charged) {
      ledger_.account(device).release(obtained.bytes);
    }
    journal_.count_failed_alloc();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  events::Alloc event{obtained.address, obtained.bytes, request.requested,      device,          0,
                      request.api,      request.kind,   events::Source::driver, via_of(request), 0};
  event.charged = request.charged;
  journal_.record(event);
  pools_.tell_changes(device);
  *handle = obtained.address;
  return CUDA_SUCCESS;
}

CUresult Policy::release_physical(const char *api, CUmemGenericAllocationHandle handle,
                                  const std::function<CUresult()> &act) {
  const PhysicalMemory::PieceRef piece = physical_.begin_release(handle);
  const CUresult result = act();
  if (piece == nullptr) {
    return result;
  }
  if (result == CUDA_SUCCESS) {
    end_piece(api, piece);
  } else {
    physical_.cancel_release(handle, piece);
  }
  return result;
}

CUresult Policy::retain_physical(const char *api, CUdeviceptr address, CUmemGenericAllocationHandle *handle,
                                 const std::function<CUresult()> &act) {
  // A block of a pool lies in memory that cuMemAlloc gave: to the driver no handle's.
  const PhysicalMemory::PieceRef piece = physical_.hold_at(address);
  const CUresult result = act();
  if (piece == nullptr) {
    return result;
  }
  if (result == CUDA_SUCCESS) {
    physical_.retained(*handle, piece);
  } else {
    end_piece(api, piece);
  }
  return result;
}

CUresult Policy::map_physical(const char *api, CUdeviceptr address, std::uint64_t bytes,
                              CUmemGenericAllocationHandle handle, const std::function<CUresult()> &act) {
  const PhysicalMemory::PieceRef piece = physical_.hold(handle);
  const CUresult result = act();
  if (piece == nullptr) {
    return result;
  }
  if (result == CUDA_SUCCESS) {
    physical_.mapped(address, bytes, piece);
  } else {
    end_piece(api, piece);
  }
  return result;
}

CUresult Policy::unmap_physical(const char *api, CUdeviceptr address, std::uint64_t bytes,
                                const std::function<CUresult()> &act) {
  const std::vector<PhysicalMemory::Mapping> mappings = physical_.begin_unmap(address, bytes);
  const CUresult result = act();
  if (result != CUDA_SUCCESS) {
    physical_.cancel_unmap(mappings);
    return result;
  }
  for (const PhysicalMemory::Mapping &mapping : mappings) {
    end_piece(api, mapping.piece);
  }
  return result;
}

// Each piece that is to be mapped is held before the driver is asked: a release on another thread may come between.
// What lost a region stays held until the stream got there.
CUresult Policy::map_arrays(const CUarrayMapInfo *entries, std::size_t count, CUstream stream,
                            const std::function<CUresult()> &act) {
  std::vector<PhysicalMemory::PieceRef> pieces;
  pieces.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool maps = entries[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    pieces.push_back(maps ? physical_.hold(entries[i].memHandle.memHandle) : nullptr);
  }
  const CUresult result = act();
  PhysicalMemory::Lost lost;
  for (std::size_t i = 0; i < count; ++i) {
    if (result == CUDA_SUCCESS) {
      physical_.array_mapped(entries[i], pieces[i], lost);
    } else if (pieces[i] != nullptr) {
      end_piece("cuMemMapArrayAsync", pieces[i]);
    }
  }
  if (!lost.empty()) {
    const ContextRef context = context_of(stream);
    pending_.add(context != nullptr ? context : nowhere_, std::move(lost), stream);
    pools_.tell_changes(context != nullptr ? context->device : 0);
  }
  return result;
}

void Policy::end_mappings(const char *api, std::uint64_t array) {
  for (const PhysicalMemory::PieceRef &piece : physical_.array_gone(array)) {
    end_piece(api, piece);
  }
}

}  // namespace ration::policy

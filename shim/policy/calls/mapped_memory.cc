#include "policy/calls/mapped_memory.h"

#include <utility>
#include <vector>

#include "policy/calls/call_parts.h"

namespace ration::policy {

ledger::Changes *MappedMemory::changes_of(const PhysicalMemory::PieceRef &piece) {
  return piece != nullptr && piece->charged ? &parts_.account(piece->device).changes() : nullptr;
}

void MappedMemory::end_piece(const char *api, const PhysicalMemory::PieceRef &piece) {
  if (!physical_.drop(piece)) {
    return;
  }
  events::Free event{piece->handle, piece->bytes, piece->device, 0, api};
  event.kind = piece->charged ? events::Kind::vmm : events::Kind::host;
  event.charged = piece->charged;
  parts_.journal.record(event);
  if (piece->charged) {
    parts_.pools.publication.publish_exactly(piece->device);
    parts_.account(piece->device).release(piece->bytes);
  }
}

CUresult MappedMemory::create(Request request, const CUmemLocation &location, Act act, Undo undo,
                              CUmemGenericAllocationHandle *handle) {
  request.charged = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  request.kind = request.charged ? events::Kind::vmm : events::Kind::host;
  if (request.charged && parts_.devices.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo);
  }
  // The device is where the memory lies, not the current one. If there is no such device, the driver must refuse the
  // request, however full the others are.
  if (request.charged && parts_.devices.all() != nullptr && parts_.devices.find(location.id) == nullptr) {
    return Admission::refuse_as_driver(act, undo);
  }
  const int device = request.charged && parts_.devices.find(location.id) != nullptr ? location.id : 0;
  const Contexts::Current where{parts_.books.no_context, device, CUDA_SUCCESS};
  if (request.charged && parts_.admission.refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Obtained obtained;
  const CUresult result = request.charged ? parts_.admission.admit(request, where, act, undo, obtained) : act(obtained);
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
      parts_.account(device).release(obtained.bytes);
    }
    parts_.journal.count_failed_alloc();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  events::Alloc event{obtained.address,
                      obtained.bytes,
                      request.requested,
                      device,
                      0,
                      request.api,
                      request.kind,
                      events::Source::driver,
                      parts_.books.via_of(request),
                      0};
  event.charged = request.charged;
  parts_.journal.record(event);
  parts_.pools.publication.publish_exactly(device);
  *handle = obtained.address;
  return CUDA_SUCCESS;
}

CUresult MappedMemory::release(const char *api, CUmemGenericAllocationHandle handle, DriverCall call) {
  const PhysicalMemory::PieceRef piece = physical_.begin_release(handle);
  const ledger::Change change(changes_of(piece));
  const CUresult result = call();
  if (piece == nullptr) {
    return result;
  }
  if (result == CUDA_SUCCESS) {
    end_piece(api, piece);
  } else {
    physical_.retained(handle, piece);
  }
  return result;
}

template <class Keep>
CUresult MappedMemory::with_hold(const char *api, const PhysicalMemory::PieceRef &piece, DriverCall call,
                                 const Keep &keep) {
  const CUresult result = call();
  if (piece != nullptr && result == CUDA_SUCCESS) {
    keep();
  } else if (piece != nullptr) {
    end_piece(api, piece);
  }
  return result;
}

// To the program, a block of a pool, or of another process, is memory from cuMemAlloc: it belongs to no handle,
// whatever it is made of.
CUresult MappedMemory::retain(const char *api, CUdeviceptr address, CUmemGenericAllocationHandle *handle,
                              DriverCall call) {
  if (parts_.pools.slabs.owner_of(address) != nullptr || parts_.imports.covers(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const PhysicalMemory::PieceRef piece = physical_.hold_at(address);
  return with_hold(api, piece, call, [&] { physical_.retained(*handle, piece); });
}

CUresult MappedMemory::map(const char *api, CUdeviceptr address, std::uint64_t bytes,
                           CUmemGenericAllocationHandle handle, DriverCall call) {
  const PhysicalMemory::PieceRef piece = physical_.hold(handle);
  return with_hold(api, piece, call, [&] { physical_.mapped(address, bytes, piece); });
}

CUresult MappedMemory::unmap(const char *api, CUdeviceptr address, std::uint64_t bytes, DriverCall call) {
  if (parts_.pools.slabs.owner_of(address) != nullptr || parts_.imports.covers(address)) {
    return CUDA_ERROR_INVALID_VALUE;  // as above
  }
  const std::vector<PhysicalMemory::Mapping> mappings = physical_.begin_unmap(address, bytes);
  const ledger::Change change(mappings.empty() ? nullptr : changes_of(mappings.front().piece));
  const CUresult result = call();
  for (const auto &[start, length, piece] : mappings) {
    result == CUDA_SUCCESS ? end_piece(api, piece) : physical_.mapped(start, length, piece);
  }
  return result;
}

CUresult MappedMemory::set_access(CUdeviceptr address, DriverCall call) {
  return parts_.pools.slabs.owner_of(address) != nullptr || parts_.imports.covers(address) ? CUDA_ERROR_INVALID_VALUE
                                                                                           : call();
}

// Each piece that is to be mapped is held before the driver's call, because another thread may release it meanwhile. A
// piece that lost a region stays held until the stream has got there.
CUresult MappedMemory::map_arrays(const CUarrayMapInfo *entries, std::size_t count, CUstream stream, DriverCall call) {
  std::vector<PhysicalMemory::PieceRef> pieces;
  pieces.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool maps = entries[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    pieces.push_back(maps ? physical_.hold(entries[i].memHandle.memHandle) : nullptr);
  }
  const CUresult result = call();
  PhysicalMemory::Lost lost;
  for (std::size_t i = 0; i < count; ++i) {
    if (result == CUDA_SUCCESS) {
      physical_.array_mapped(entries[i], pieces[i], lost);
    } else if (pieces[i] != nullptr) {
      end_piece("cuMemMapArrayAsync", pieces[i]);
    }
  }
  if (!lost.empty()) {
    const ContextRef context = parts_.contexts.of_stream(stream);
    const int device = lost.front()->device;
    parts_.pending.add({context != nullptr ? context : parts_.books.no_context, device, 0, std::move(lost)}, stream);
    parts_.pools.publication.publish_exactly(context != nullptr ? context->device : 0);
  }
  return result;
}

void MappedMemory::array_made(const char *api, std::uint64_t array, bool deferred) {
  array_gone(api, array);
  if (deferred) {
    physical_.deferred_made(array);
  }
}

void MappedMemory::array_gone(const char *api, std::uint64_t array) {
  for (const PhysicalMemory::PieceRef &piece : physical_.array_gone(array)) {
    end_piece(api, piece);
  }
}

}  // namespace ration::policy

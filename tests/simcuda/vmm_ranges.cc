// Reserved addresses and their mappings. Unmapping waits for nothing: running work loses its memory, and faults if it
// touches it, as on hardware for a program that does not wait by itself. Layer: vmm.h. Threads: any.
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {
namespace {

constexpr int kNowhere = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Like all device memory: excluded from forked children and core files.
std::byte *no_child(void *memory, std::uint64_t bytes) {
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, bytes, MADV_DONTFORK);
  ::madvise(memory, bytes, MADV_DONTDUMP);
  return static_cast<std::byte *>(memory);
}

std::byte *no_access(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > SIZE_MAX - alignment) return nullptr;
  void *const all = ::mmap(nullptr, bytes + alignment, PROT_NONE, kNowhere, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(all);
  const std::uintptr_t start = (first + alignment - 1) / alignment * alignment;
  if (start != first) ::munmap(all, start - first);
  ::munmap(reinterpret_cast<void *>(start + bytes), first + alignment - start);
  return no_child(reinterpret_cast<void *>(start), bytes);
}

std::byte *no_access_at(std::uint64_t hint, std::uint64_t bytes, std::uint64_t alignment) {
  if (hint == 0 || hint % alignment != 0) return nullptr;
  void *const wanted = reinterpret_cast<void *>(hint);
  void *const given = ::mmap(wanted, bytes, PROT_NONE, kNowhere | MAP_FIXED_NOREPLACE, -1, 0);
  if (given == wanted) return no_child(given, bytes);
  if (given != MAP_FAILED) ::munmap(given, bytes);  // a kernel that does not support the flag
  return nullptr;
}

std::uint64_t number_of(const std::byte *memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

// Reuses freed addresses of the same size: late work may still use their view, so it is never unmapped.
std::optional<std::pair<std::uint64_t, std::byte *>> take_spare(std::uint64_t bytes, std::uint64_t alignment) {
  auto &spare = driver().virtual_memory.spare;
  const auto [first, last] = spare.equal_range(bytes);
  for (auto found = first; found != last; ++found) {
    if (found->second.first % alignment != 0) continue;
    const auto taken = found->second;
    spare.erase(found);
    unwatch(taken.second, bytes);
    return taken;
  }
  return std::nullopt;
}

Reservation *reservation_at(std::uint64_t address, std::uint64_t *start) {
  auto &all = driver().virtual_memory.reservations;
  const auto after = all.upper_bound(address);
  if (after == all.begin()) return nullptr;
  const auto candidate = std::prev(after);
  *start = candidate->first;
  return address - candidate->first < candidate->second.reach ? &candidate->second : nullptr;
}

// Whether a mapping begins before the address and ends after it.
bool is_inside_a_mapping(const Reservation &reservation, std::uint64_t address) {
  const auto next = reservation.mappings.lower_bound(address);
  return next != reservation.mappings.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address;
}

bool is_free(const Reservation &reservation, std::uint64_t address, std::uint64_t bytes) {
  const auto next = reservation.mappings.lower_bound(address);
  const bool met = next != reservation.mappings.end() && next->first < address + bytes;
  return !met && !is_inside_a_mapping(reservation, address);
}

// H100, H200, driver 580.159: a mapping that begins in a reserved range may end after it. Here only where the addresses
// are nobody's.
bool reach(std::uint64_t start, Reservation &reservation, std::uint64_t bytes) {
  if (bytes <= reservation.reach) return true;
  if (bytes > reservation.bytes + kPastTheEnd) return false;
  void *const wanted = reinterpret_cast<void *>(start + reservation.reach);
  const std::uint64_t more = bytes - reservation.reach;
  void *const given = ::mmap(wanted, more, PROT_NONE, kNowhere | MAP_FIXED_NOREPLACE, -1, 0);
  if (given == wanted && no_child(given, more) != nullptr) {
    reservation.reach = bytes;
    return true;
  }
  if (given != MAP_FAILED) ::munmap(given, more);  // a kernel that does not support the flag
  return false;
}

}  // namespace

std::optional<Mapped> mapped_at(std::uint64_t address) {
  Mapped found;
  found.reservation = reservation_at(address, &found.reserved_at);
  if (found.reservation == nullptr) return std::nullopt;
  auto &mappings = found.reservation->mappings;
  const auto after = mappings.upper_bound(address);
  if (after == mappings.begin()) return found;
  const auto candidate = std::prev(after);
  if (address - candidate->first < candidate->second.bytes) {
    found.at = candidate->first;
    found.mapping = &candidate->second;
  }
  return found;
}

void let_host(std::uint64_t address, Mapping &mapping, CUmemAccess_flags access) {
  if (mapping.host == access) return;
  mapping.host = access;
  void *const at = reinterpret_cast<void *>(address);
  if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    no_child(::mmap(at, mapping.bytes, PROT_NONE, kNowhere | MAP_FIXED, -1, 0), mapping.bytes);
    return;
  }
  const int protection = access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE;
  no_child(::mmap(at, mapping.bytes, protection, MAP_SHARED | MAP_FIXED, mapping.memory->file->descriptor,
                  static_cast<off_t>(mapping.memory->offset)),
           mapping.bytes);
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  note("%zu", size);
  if (ptr == nullptr || flags != 0 || size == 0 || size % kPage != 0 || addr % kPage != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t aligned = std::max<std::uint64_t>(alignment, kVmmGranularity);
  const Lock lock(driver().mutex);
  auto &reserved = driver().virtual_memory.reservations;
  std::byte *start = no_access_at(addr, size, aligned), *view = nullptr;
  if (start == nullptr) {
    if (const auto spare = take_spare(size, aligned)) {
      reserved[spare->first] = {size, size, spare->second, {}};
      about(size);
      *ptr = spare->first;
      return CUDA_SUCCESS;
    }
    start = no_access(size, aligned);
  }
  if (start != nullptr) view = no_access(size + kPastTheEnd, kPage);
  if (view == nullptr) {
    if (start != nullptr) ::munmap(start, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reserved[number_of(start)] = {size, size, view, {}};
  about(size);
  *ptr = number_of(start);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  const Lock lock(driver().mutex);
  auto &memory = driver().virtual_memory;
  const auto found = memory.reservations.find(ptr);
  if (found == memory.reservations.end() || found->second.bytes != size || !found->second.mappings.empty()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  about(size);
  if (found->second.reach > size) ::munmap(reinterpret_cast<void *>(ptr + size), found->second.reach - size);
  memory.spare.emplace(size, std::pair{found->first, found->second.view});
  memory.reservations.erase(found);
  return CUDA_SUCCESS;
}

// H100, H200, driver 580.159: what is not exactly the whole handle is NOT_SUPPORTED, before the addresses are looked
// at.
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  note("%zu", size);
  if (flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  MemoryHandle *const known = memory_handle(handle);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || size != known->memory->bytes) return CUDA_ERROR_NOT_SUPPORTED;
  std::uint64_t start = 0;
  Reservation *const reservation = reservation_at(ptr, &start);
  if (ptr % kVmmGranularity != 0 || reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_free(*reservation, ptr, size) || !reach(start, *reservation, ptr - start + size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Mapping mapping{.bytes = size, .handle = handle, .memory = known->memory, .id = driver().next_id++, .devices = {}};
  mapping.devices.resize(driver().devices.size(), CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const auto placed = reservation->mappings.emplace(ptr, std::move(mapping)).first;
  if (no_child(::mmap(reservation->view + (ptr - start), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      known->memory->file->descriptor, static_cast<off_t>(known->memory->offset)),
               size) == nullptr) {
    reservation->mappings.erase(placed);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  unwatch(reservation->view + (ptr - start), size);
  ++known->mappings;
  about(size);
  return CUDA_SUCCESS;
}

// H100, H200, driver 580.159: all mappings in the range go, be there holes or none at all; but no part of one.
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  const Lock lock(driver().mutex);
  std::uint64_t start = 0;
  Reservation *const reservation = reservation_at(ptr, &start);
  if (size == 0 || size % kVmmGranularity != 0 || ptr % kVmmGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (reservation == nullptr || size > reservation->reach - (ptr - start)) return CUDA_ERROR_INVALID_VALUE;
  if (is_inside_a_mapping(*reservation, ptr) || is_inside_a_mapping(*reservation, ptr + size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto &mappings = reservation->mappings;
  const auto first = mappings.lower_bound(ptr), last = mappings.lower_bound(ptr + size);
  if (first == last) return CUDA_SUCCESS;
  std::byte *const view = reservation->view + (ptr - start);
  if (no_child(::mmap(view, size, PROT_READ | PROT_WRITE, kNowhere | MAP_FIXED, -1, 0), size) == nullptr) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  watch_unmapped(view, size);
  std::for_each(first, last, [](auto &placed) {
    auto &[address, mapping] = placed;
    if (mapping.has_access()) about(mapping.bytes);
    let_host(address, mapping, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    --driver().virtual_memory.handles.at(mapping.handle).mappings;
    forget_unused(mapping.handle);
  });
  mappings.erase(first, last);
  return CUDA_SUCCESS;
}

}  // namespace simcuda

#include "tests/simcuda/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

namespace simcuda {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kForget = 64 * 1024;  // below it a system call costs more than the pages are worth
constexpr std::uint64_t kRoom = 4;            // addresses per byte of physical memory

struct Mapping {
  void *device;
  void *view;
};

constexpr std::uint64_t kNarrowEnd = std::uint64_t{1} << 32;
constexpr std::uint64_t kNarrowStep = 64 * 1024 * 1024;

// The device's side lies at `wish` exactly, or anywhere where that is null.
std::optional<Mapping> map_twice(std::uint64_t bytes, void *wish = nullptr) {
  const int file = ::memfd_create("simcuda-device", MFD_CLOEXEC);
  if (file < 0) return std::nullopt;
  Mapping made{MAP_FAILED, MAP_FAILED};
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    const int placed = wish == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    made.device = ::mmap(wish, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | placed, file, 0);
    made.view = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  ::close(file);
  const bool there = wish == nullptr || made.device == wish;  // an older kernel takes it for a hint
  if (made.device != MAP_FAILED && made.view != MAP_FAILED && there) {
    // A child has no device: its copy of the address space must not keep the memory alive.
    ::madvise(made.device, bytes, MADV_DONTFORK);
    ::madvise(made.view, bytes, MADV_DONTFORK);
    ::madvise(made.view, bytes, MADV_DONTDUMP);
    return made;
  }
  if (made.device != MAP_FAILED) ::munmap(made.device, bytes);
  if (made.view != MAP_FAILED) ::munmap(made.view, bytes);
  return std::nullopt;
}

}  // namespace

AddressSpace *AddressSpace::create(std::uint64_t physical_bytes) {
  for (std::uint64_t room = kRoom; room != 0; room /= 2) {
    const std::uint64_t bytes = (physical_bytes + kPage - 1) / kPage * kPage * room;
    if (const auto mapping = map_twice(bytes)) {
      return new AddressSpace(reinterpret_cast<std::uint64_t>(mapping->device), static_cast<std::byte *>(mapping->view),
                              bytes);
    }
  }
  return nullptr;
}

AddressSpace *AddressSpace::create_narrow(std::uint64_t most_bytes) {
  for (std::uint64_t bytes = most_bytes / kNarrowStep * kNarrowStep; bytes >= kNarrowStep; bytes -= kNarrowStep) {
    for (std::uint64_t first = kNarrowStep; first + bytes < kNarrowEnd; first += kNarrowStep) {
      if (const auto mapping = map_twice(bytes, reinterpret_cast<void *>(first))) {
        return new AddressSpace(first, static_cast<std::byte *>(mapping->view), bytes);
      }
    }
  }
  return nullptr;
}

AddressSpace::AddressSpace(std::uint64_t base, std::byte *view, std::uint64_t bytes)
    : base_(base), view_(view), bytes_(bytes), free_{{base, bytes}} {}

std::optional<std::uint64_t> AddressSpace::take(std::uint64_t bytes) {
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    if (hole->second < bytes) continue;
    const auto [address, size] = *hole;
    free_.erase(hole);
    if (size != bytes) free_.emplace(address + bytes, size - bytes);
    return address;
  }
  return std::nullopt;
}

void AddressSpace::give(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = (address + kPage - 1) / kPage * kPage, last = (address + bytes) / kPage * kPage;
  if (bytes >= kForget) ::madvise(view(first), last - first, MADV_REMOVE);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += bytes;
      return;
    }
  }
  free_.emplace(address, bytes);
}

}  // namespace simcuda

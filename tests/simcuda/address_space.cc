#include "tests/simcuda/address_space.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "tests/simcuda/bytes.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kForget = 64 * 1024;  // below this size a system call costs more than the pages are worth
constexpr std::uint64_t kRoom = 4;            // addresses per byte of physical memory

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_SHARED | MAP_NORESERVE;

struct Mapping {
  void *device;
  void *view;
  AddressSpace::File file;
};

// After the bytes the file holds one word per granule: the id published there.
constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);

std::uint64_t file_bytes(std::uint64_t bytes) {
  return bytes + bytes / kUnitBytes * kWordBytes;
}

off_t word_of(std::uint64_t bytes, std::uint64_t offset) {
  return static_cast<off_t>(bytes + offset / kUnitBytes * kWordBytes);
}

// A child that has not called exec inherits the descriptor of a shared file and keeps its memory alive, too.
AddressSpace::File keep(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return {};
  return {descriptor, status.st_ino};
}

bool is_still(const AddressSpace::File &file) {
  struct stat status = {};  // programs may close descriptors that they did not open
  return file.descriptor >= 0 && ::fstat(file.descriptor, &status) == 0 && status.st_ino == file.inode;
}

constexpr std::uint64_t kNarrowEnd = std::uint64_t{1} << 32;
constexpr std::uint64_t kNarrowStep = 64 * 1024 * 1024;

// Maps the device's side at exactly `wish`, or at any address where `wish` is null.
std::optional<Mapping> map_device(std::uint64_t bytes, AddressSpace::Host host, bool shared, void *wish = nullptr) {
  const int file = ::memfd_create("simcuda-device", MFD_CLOEXEC);
  if (file < 0) return std::nullopt;
  Mapping made{MAP_FAILED, MAP_FAILED, {}};
  if (::ftruncate(file, static_cast<off_t>(file_bytes(bytes))) == 0) {
    made.view = ::mmap(nullptr, bytes, kProtection, kFlags, file, 0);
    const bool once = host == AddressSpace::Host::kLetIn;
    const int placed = wish == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    made.device = once ? made.view : ::mmap(wish, bytes, PROT_NONE, kFlags | placed, file, 0);
  }
  if (shared) made.file = keep(file);
  if (made.file.descriptor < 0) ::close(file);
  const bool there = wish == nullptr || made.device == wish;  // an older kernel treats the address as a hint
  if (made.device != MAP_FAILED && made.view != MAP_FAILED && there) {
    // A forked child has no device: its copy of the address space must not keep the memory alive.
    ::madvise(made.device, bytes, MADV_DONTFORK);
    ::madvise(made.view, bytes, MADV_DONTFORK);
    ::madvise(made.view, bytes, MADV_DONTDUMP);
    return made;
  }
  if (made.file.descriptor >= 0) ::close(made.file.descriptor);
  if (made.device != MAP_FAILED) ::munmap(made.device, bytes);
  if (made.view != MAP_FAILED) ::munmap(made.view, bytes);
  return std::nullopt;
}

}  // namespace

AddressSpace *AddressSpace::create(std::uint64_t physical_bytes, bool shared, Host host) {
  for (std::uint64_t room = kRoom; room != 0; room /= 2) {
    const std::uint64_t bytes = (physical_bytes + kPage - 1) / kPage * kPage * room;
    if (const auto mapping = map_device(bytes, host, shared)) {
      return new AddressSpace(reinterpret_cast<std::uint64_t>(mapping->device), static_cast<std::byte *>(mapping->view),
                              bytes, mapping->file);
    }
  }
  return nullptr;
}

AddressSpace *AddressSpace::create_legacy32(std::uint64_t most_bytes) {
  for (std::uint64_t bytes = most_bytes / kNarrowStep * kNarrowStep; bytes >= kNarrowStep; bytes -= kNarrowStep) {
    for (std::uint64_t first = kNarrowStep; first + bytes < kNarrowEnd; first += kNarrowStep) {
      if (const auto mapping = map_device(bytes, Host::kKeptOut, false, reinterpret_cast<void *>(first))) {
        return new AddressSpace(first, static_cast<std::byte *>(mapping->view), bytes, mapping->file);
      }
    }
  }
  return nullptr;
}

AddressSpace::AddressSpace(std::uint64_t base, std::byte *view, std::uint64_t bytes, File file)
    : base_(base), view_(view), bytes_(bytes), file_(file), free_{{base, bytes}} {}

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

void AddressSpace::discard(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t first = (address + kPage - 1) / kPage * kPage, last = (address + bytes) / kPage * kPage;
  if (bytes >= kForget) ::madvise(view(first), last - first, MADV_REMOVE);
}

void AddressSpace::give(std::uint64_t address, std::uint64_t bytes) {
  discard(address, bytes);
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

bool AddressSpace::publish(std::uint64_t address, std::uint64_t id) {
  return is_still(file_) && ::pwrite(file_.descriptor, &id, sizeof id, word_of(bytes_, offset(address))) == sizeof id;
}

std::uint64_t AddressSpace::published(int descriptor, std::uint64_t offset) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return 0;
  const std::uint64_t unit = kUnitBytes + kWordBytes;
  const std::uint64_t bytes = static_cast<std::uint64_t>(status.st_size) / unit * kUnitBytes;
  std::uint64_t id = 0;
  const bool read = offset < bytes && ::pread(descriptor, &id, sizeof id, word_of(bytes, offset)) == sizeof id;
  return read ? id : 0;
}

// Maps whole pages. The bytes around the block in the first and last page stay private in effect: the driver's calls
// accept only addresses of the allocation.
std::optional<std::uint64_t> AddressSpace::map(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t within = offset % kPage;
  const std::uint64_t length = (within + bytes + kPage - 1) / kPage * kPage;
  const auto taken = take(length + kPage);
  if (!taken) return std::nullopt;
  const std::uint64_t first = (*taken + kPage - 1) / kPage * kPage, end = *taken + length + kPage;
  if (first != *taken) give(*taken, first - *taken);
  if (first + length != end) give(first + length, end - first - length);
  if (::mmap(view(first), length, kProtection, kFlags | MAP_FIXED, descriptor, static_cast<off_t>(offset - within)) ==
      MAP_FAILED) {
    give(first, length);
    return std::nullopt;
  }
  ::madvise(view(first), length, MADV_DONTFORK);
  ::madvise(view(first), length, MADV_DONTDUMP);
  return first + within;
}

// If the file cannot be mapped again, these addresses are not reused.
void AddressSpace::unmap(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = address / kPage * kPage;
  const std::uint64_t length = (address + bytes + kPage - 1) / kPage * kPage - first;
  const bool back = is_still(file_) && ::mmap(view(first), length, kProtection, kFlags | MAP_FIXED, file_.descriptor,
                                              static_cast<off_t>(offset(first))) != MAP_FAILED;
  if (!back) return;
  ::madvise(view(first), length, MADV_DONTFORK);
  ::madvise(view(first), length, MADV_DONTDUMP);
  give(first, length);
}

}  // namespace simcuda

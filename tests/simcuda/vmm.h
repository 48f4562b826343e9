// Virtual memory management: physical memory, the handles that name it, reserved addresses and what is mapped there.
// Layer: driver.h. Threads: under Driver::mutex. Owns: a reservation's views, for ever, so that late work in a stream
// never faults: what it does to a range that is mapped no more is lost, as nothing can rely on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace simcuda {

struct Device;

inline constexpr std::uint64_t kVmmGranularity = std::uint64_t{2} << 20;

// Part of a memory file. It goes with the last handle that names it.
struct PhysicalMemory {
  int file = -1;
  bool own_file = false;  // one that can be exported; all other memory lies in one file of the process
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  Device *charged = nullptr;  // null: memory of the host, or imported from another process
  CUmemAllocationProp properties = {};

  PhysicalMemory() = default;
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory &) = delete;
  PhysicalMemory &operator=(const PhysicalMemory &) = delete;
  bool on_host() const { return properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
};

// Lives while it is referenced or mapped; only then is its number good for calls that want a handle, too.
struct MemoryHandle {
  std::shared_ptr<PhysicalMemory> memory;
  unsigned references = 1;
  unsigned mappings = 0;
};

struct Mapping {
  std::uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  std::shared_ptr<PhysicalMemory> memory;
  std::uint64_t id = 0;
  std::vector<CUmemAccess_flags> devices;  // by ordinal
  CUmemAccess_flags host = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  bool sync_memops = false;
};

struct Reservation {
  std::uint64_t bytes = 0;
  std::byte *view = nullptr;  // the simulator's own way to the same bytes
  std::map<std::uint64_t, Mapping> mappings;
};

struct VirtualMemory {
  std::map<CUmemGenericAllocationHandle, MemoryHandle> handles;
  std::map<std::uint64_t, Reservation> reservations;
  std::multimap<std::uint64_t, std::pair<std::uint64_t, std::byte *>> spare;  // given back: bytes → address, view
};

// Null: no such handle, or one that has been released.
MemoryHandle *memory_handle(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle add_handle(std::shared_ptr<PhysicalMemory> memory);
// Forgets a handle that is neither referenced nor mapped.
void forget_unused(CUmemGenericAllocationHandle handle);

// Keeps a handle's memory as a mapping does, for what is mapped at no address. REQUIRES: the handle is known.
class MemoryHold {
 public:
  explicit MemoryHold(CUmemGenericAllocationHandle handle);
  ~MemoryHold();
  MemoryHold(const MemoryHold &) = delete;
  MemoryHold &operator=(const MemoryHold &) = delete;

 private:
  CUmemGenericAllocationHandle handle_;
};
// Takes the device's memory for it, if it is a device's; OUT_OF_MEMORY, INVALID_DEVICE.
CUresult charge(PhysicalMemory &memory);
// INVALID_VALUE, INVALID_DEVICE, NOT_SUPPORTED for properties that no memory can have.
CUresult check_properties(const CUmemAllocationProp *properties);

// A memory file with a label behind its bytes, so that whoever gets it knows what it is. False: no file to be had.
bool make_own_file(PhysicalMemory &memory);

struct Mapped {
  std::uint64_t reserved_at = 0;
  Reservation *reservation = nullptr;
  std::uint64_t at = 0;
  Mapping *mapping = nullptr;  // null: the address is only reserved
};
// Nothing: the address is in no reservation.
std::optional<Mapped> mapped_at(std::uint64_t address);

enum class Use : unsigned char { kRead, kWrite };
// Whether the device may use all of the range, over any number of mappings side by side.
bool reachable(const Device &device, Use use, std::uint64_t address, std::uint64_t bytes);

// Lets the host program itself at a mapping's bytes, or no longer.
void let_host(std::uint64_t address, Mapping &mapping, CUmemAccess_flags access);

}  // namespace simcuda

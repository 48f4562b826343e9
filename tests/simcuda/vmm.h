// Virtual memory management: physical memory, the handles that name it, reserved addresses and their mappings.
// Layer: driver.h. Threads: under Driver::mutex. Owns: a reservation's views, for ever, so that late stream work never
// ends the process; what it writes to an unmapped range is lost, and its context gets a fault.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/simcuda/memory_file.h"
#include "tests/simcuda/stream.h"

namespace simcuda {

struct Device;

inline constexpr std::uint64_t kVmmGranularity = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kPastTheEnd = std::uint64_t{64} << 20;  // how far a mapping may extend past the end

// Part of a memory file; freed with the last handle that names it and the last exported description of it.
struct PhysicalMemory {
  MemoryFileRef file;
  std::uint64_t offset = 0;
  std::uint64_t label = 0;  // the label's offset, before the memory; only if `labelled`
  bool labelled = false;    // the memory may be exported
  void *kept = nullptr;     // the file description that another process exported
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

// Lives while referenced or mapped. Calls that require a valid handle accept its number only during that time.
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
  bool has_access() const {
    return host != CU_MEM_ACCESS_FLAGS_PROT_NONE || std::any_of(devices.begin(), devices.end(), [](auto flags) {
             return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
           });
  }
};

struct Reservation {
  std::uint64_t bytes = 0;
  std::uint64_t reach = 0;    // more than `bytes` if a mapping extends past the end
  std::byte *view = nullptr;  // the simulator's own view of the same bytes, with kPastTheEnd more
  std::map<std::uint64_t, Mapping> mappings;
};

struct VirtualMemory {
  std::map<CUmemGenericAllocationHandle, MemoryHandle> handles;
  std::map<std::uint64_t, Reservation> reservations;
  std::multimap<std::uint64_t, std::pair<std::uint64_t, std::byte *>>
      spare;  // freed reservations: bytes → address, view
  // Views of granules that were unmapped while the work up to these marks was unfinished.
  std::map<std::byte *, std::shared_ptr<const std::vector<Mark>>> lost;
};

// Returns null if there is no such handle or if it was released.
MemoryHandle *memory_handle(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle add_handle(std::shared_ptr<PhysicalMemory> memory);
// Removes a handle that is neither referenced nor mapped.
void forget_unused(CUmemGenericAllocationHandle handle);

// Keeps a handle's memory alive, as a mapping does, for uses without an address. REQUIRES: the handle is known.
class MemoryHold {
 public:
  explicit MemoryHold(CUmemGenericAllocationHandle handle);
  ~MemoryHold();
  MemoryHold(const MemoryHold &) = delete;
  MemoryHold &operator=(const MemoryHold &) = delete;

 private:
  CUmemGenericAllocationHandle handle_;
};
// Reserves the device's memory for it, if it is device memory; OUT_OF_MEMORY, INVALID_DEVICE.
CUresult charge(PhysicalMemory &memory);
// Returns INVALID_VALUE, INVALID_DEVICE or NOT_SUPPORTED for properties that no memory can have.
CUresult check_properties(const CUmemAllocationProp *properties);

// Ends memory that may have been exported. Its bytes are given back when no process holds them any more.
void leave_exportable(PhysicalMemory &memory);

struct Mapped {
  std::uint64_t reserved_at = 0;
  Reservation *reservation = nullptr;
  std::uint64_t at = 0;
  Mapping *mapping = nullptr;  // null: the address is only reserved
};
// Empty if the address is in no reservation.
std::optional<Mapped> mapped_at(std::uint64_t address);

enum class Use : unsigned char { kRead, kWrite };
// True if the device may access the whole range, over any number of adjacent mappings.
bool reachable(const Device &device, Use use, std::uint64_t address, std::uint64_t bytes);

// From now on, unfinished work that touches the view faults (vmm_faults.cc). REQUIRES: a view of fresh memory.
void watch_unmapped(std::byte *view, std::uint64_t bytes);
bool is_watched(const std::byte *view);
// Called when the view gets other memory or another owner.
void unwatch(std::byte *view, std::uint64_t bytes);
// Called after each operation of a stream, whose context gets a fault if a watched view was touched meanwhile. If
// several streams run at the same time, the fault goes to the first one to end.
void find_faults(const Stream &stream);

// Grants or revokes the host program's own access to a mapping's bytes.
void let_host(std::uint64_t address, Mapping &mapping, CUmemAccess_flags access);

}  // namespace simcuda

// The simulated machine: how much physical memory each device has and who holds it. One file in a folder, shared by
// all processes of the machine, or private memory of one process. Who dies gives back: a slot lives as long as the
// kernel holds its owner's lock. Layer: settings. Threads: any. Owns: its mapping, for ever.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/simcuda/settings.h"

namespace simcuda {

inline constexpr unsigned kMostMachineDevices = 16;
inline constexpr unsigned kSlots = 256;

struct MachineDevice {
  std::uint64_t bytes;
  unsigned char uuid[16];
};

// What one process holds of one device. A reservation is first pending, then committed: whoever adds up reads pending
// before committed, so that bytes on their way between the two are never missed (counted twice at worst, for an
// instant).
struct Held {
  std::atomic<std::uint64_t> pending;
  std::atomic<std::uint64_t> committed;
};

struct Slot {
  std::atomic<std::uint32_t> pid;            // 0 = free
  std::atomic<std::uint32_t> ended;          // set by an orderly exit: nothing lingers
  std::atomic<std::uint64_t> found_dead_ns;  // 0 = not yet
  Held held[kMostMachineDevices];
};

struct MachinePage {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t devices;
  MachineDevice device[kMostMachineDevices];
  std::atomic<std::uint32_t> slots_used;  // one more than the highest slot ever taken
  std::uint32_t reserved;
  Slot slot[kSlots];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class Machine {
 public:
  // Joins the machine of the settings (creates it when it is not there) as a holder of memory. Null: the folder cannot
  // be used, no slot is free, or SIMCUDA_DEVICES was not understood; one line on stderr said why.
  static Machine *join(const Settings &settings);
  // Looks on without holding anything (libnvidia-ml): of a machine's processes it may be the first. Null as above.
  static Machine *watch(const Settings &settings);
  // Looks at another library's private machine.
  static Machine *watch(void *page);

  unsigned devices() const { return page_->devices; }
  const MachineDevice &device(unsigned index) const { return page_->device[index]; }
  void *page() const { return page_; }

  // Takes bytes of physical memory, or none: the sum over all processes never exceeds the device.
  bool reserve(unsigned device, std::uint64_t bytes);
  void release(unsigned device, std::uint64_t bytes);

  // Bytes that all processes hold, after giving back what the dead held.
  std::uint64_t used(unsigned device);
  struct Holder {
    unsigned pid;
    std::uint64_t bytes;
  };
  std::vector<Holder> holders(unsigned device);

  // At an orderly exit: what this process holds comes back the moment it is gone.
  void mark_ended();

 private:
  Machine(MachinePage *page, std::string file, unsigned return_ms)
      : page_(page), file_(std::move(file)), return_ms_(return_ms) {}

  struct Sum {
    std::uint64_t bytes;
    bool unsettled;  // somebody else was in the middle of a reservation
  };
  Sum sum(unsigned device) const;
  bool take_slot();
  void reap();

  MachinePage *page_;
  std::string file_;  // empty: private
  unsigned return_ms_;
  unsigned slot_ = kSlots;
};

}  // namespace simcuda

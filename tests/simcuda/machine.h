// The simulated machine: each device's physical memory and its holders. The state is in one file in a folder, shared by
// all processes of the machine, or in private memory of one process. A dead process's memory is reclaimed, since a slot
// lives only as long as the kernel holds its owner's lock. Layer: settings. Threads: any. Owns: its mapping, for ever.
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

// The memory that one process holds on one device. A reservation is first pending, then committed. Readers load pending
// before committed, so that they never miss bytes in transit between the two; they may briefly count them twice.
struct Held {
  std::atomic<std::uint64_t> pending;
  std::atomic<std::uint64_t> committed;
};

struct Slot {
  std::atomic<std::uint32_t> pid;            // 0 = free
  std::atomic<std::uint32_t> ended;          // set by an orderly exit, so that the memory is reclaimed without delay
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
  // Joins the machine that the settings name, and creates it if absent; may then hold memory. Returns null, after one
  // line on stderr, if the folder is unusable, no slot is free, or SIMCUDA_DEVICES is invalid.
  static Machine *join(const Settings &settings);
  // Observes without holding memory (libnvidia-ml), possibly as the machine's first process. Null as above.
  static Machine *watch(const Settings &settings);
  // Observes another library's private machine.
  static Machine *watch(void *page);

  unsigned devices() const { return page_->devices; }
  const MachineDevice &device(unsigned index) const { return page_->device[index]; }
  void *page() const { return page_; }

  // Reserves all these bytes of physical memory or none, so that the sum over all processes never exceeds the device.
  bool reserve(unsigned device, std::uint64_t bytes);
  void release(unsigned device, std::uint64_t bytes);

  // Bytes that all processes hold, after reclaiming the bytes of dead processes.
  std::uint64_t used(unsigned device);
  struct Holder {
    unsigned pid;
    std::uint64_t bytes;
  };
  std::vector<Holder> holders(unsigned device);

  // Called at an orderly exit, so that the bytes of this process are reclaimed as soon as it ends.
  void mark_ended();

 private:
  Machine(MachinePage *page, std::string file, unsigned return_ms)
      : page_(page), file_(std::move(file)), return_ms_(return_ms) {}

  struct Sum {
    std::uint64_t bytes;
    bool reservation_pending;  // another process had a reservation in progress
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

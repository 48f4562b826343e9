// The one object that joins everything, built at the first CUDA call and leaked.
// Layer: runtime (may include policy, config): settings become options here and nowhere else.
// Threads: get() from any; threads that arrive during first use wait. Called from: first use, fork child, exit.
#pragma once

#include <atomic>
#include <cstdint>
#include <tuple>

#include "policy/devices/request.h"

namespace ration::policy {
class ArrayMemory;
class ContextLife;
class DeviceMemory;
class HostMemory;
class MappedMemory;
class Queries;
class SharedBlocks;
class StreamMemory;
class SyncAndCapture;
}  // namespace ration::policy

namespace ration::runtime {

struct Assembly;

class Runtime {
 public:
  // The process's runtime, built if need be. nullptr: it could not be built; the caller fails closed. A forked child
  // gets one of its own: nothing of the parent's is the child's to free or to count.
  static Runtime *get() noexcept;
  // The same without building it: nullptr where there is none.
  static Runtime *existing() noexcept;

  // What serves one family of hooks.
  template <class Family>
  Family &family() const {
    return *std::get<Family *>(families_);
  }
  // Writes the log's first line, which names the devices: tried at each call until the driver can be asked about them.
  void describe() noexcept {
    if (!described_.load(std::memory_order_relaxed)) {  // a late reader tries in vain
      describe_now();
    }
  }

 private:
  friend struct Builder;
  explicit Runtime(Assembly &assembly);
  void describe_now() noexcept;

  Assembly &assembly_;
  std::atomic<bool> described_{false};
  const std::tuple<policy::DeviceMemory *, policy::HostMemory *, policy::ArrayMemory *, policy::MappedMemory *,
                   policy::StreamMemory *, policy::SharedBlocks *, policy::ContextLife *, policy::SyncAndCapture *,
                   policy::Queries *>
      families_;
};

// Called once by the core's start: a counter that `end` reports and a way to tell the program's calls apart.
struct Reports {
  const std::uint64_t *unknown_versions = nullptr;
  events::Via (*via_of)(const void *caller) = nullptr;
};
void set_reports(const Reports &reports);

}  // namespace ration::runtime

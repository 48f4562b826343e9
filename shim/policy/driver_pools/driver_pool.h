// One of the driver's memory pools, and what the driver reports about it. The memory that the graphs of a device
// allocate is such a pool too. Layer: policy/driver_pools. Threads: any; what is charged for it changes under the lock
// of StreamPools.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "driver/functions.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

class DriverPool {
 public:
  // The memory of a device that its graphs share. A launch takes no additional memory if it finds all that its graph
  // had at its last launch, that is, if no memory was lost and no other graph ran since then. Trims are made only while
  // no launch relies on that memory.
  struct Graphs {
    explicit Graphs(CUdevice its_device) : device(its_device) {}
    const CUdevice device;
    std::atomic<std::uint64_t> losses{0};      // how many times memory may have been returned to the device
    std::atomic<int> relying{0};               // launches in progress that rely on the present memory
    std::atomic<bool> owed{false};             // the last of these launches must make a trim
    std::atomic<std::uint64_t> latest{0};      // the number of the last graph that ran without relying on memory
    std::atomic<CUstream> stream{nullptr};     // the stream in which that graph ran
    std::atomic<std::uint64_t> live_bytes{0};  // bytes of blocks that launches have left, in whole units
    // The owner of these blocks in the address book. They end with the last context of the device, so none of its real
    // contexts can be their owner.
    const ContextRef owner = std::make_shared<Context>();

    // Called before a launch checks the present memory, and at its end. The last launch to end makes the trim if one
    // was put off.
    void begin_relying() { relying.fetch_add(1); }
    void end_relying();
    // Trims, for the program or for us: now, or as soon as no launch relies on the memory.
    CUresult trim();
  };

  DriverPool(CUmemoryPool its_handle, int its_device, std::uint64_t its_cap = 0,
             std::unique_ptr<Graphs> its_graphs = {})
      : handle(its_handle), device(its_device), cap(its_cap), graphs(std::move(its_graphs)) {}
  const CUmemoryPool handle;
  const int device;                      // ordinal; -1: the pool has host memory
  const std::uint64_t cap;               // the most bytes that the pool may hold; 0: not known
  const std::unique_ptr<Graphs> graphs;  // nullptr: a pool of cuMemAllocAsync

  // The bytes that the driver reports; 0 if it does not report them.
  std::uint64_t reserved_bytes() const { return reserved().value_or(0); }
  std::uint64_t used_bytes() const;  // UINT64_MAX: the driver does not report them
  // The bytes held beyond the live blocks; 0 if the driver does not report them. REQUIRES: no thread destroys the pool.
  std::uint64_t idle_bytes() const;
  std::optional<std::uint64_t> reserved() const;

 private:
  friend class StreamPools;
  std::uint64_t charged_ = 0;    // includes the bounds of calls in flight
  std::uint64_t in_flight_ = 0;  // bytes by which calls in flight may let the pool grow
  std::uint64_t completed_ = 0;  // the sum of these bytes over all calls that ever succeeded
  std::uint64_t relied_ = 0;     // the part of in_flight_ for which calls rely on memory in the pool
  int to_cap_ = 0;               // calls in flight that rely on the cap
  std::uint64_t falls_ = 0;      // how many times the charge fell to a figure from the driver
  std::uint64_t reserved_ = 0;   // the driver's latest figure
  std::uint64_t step_ = 0;       // divides every growth that was seen; 0: none was seen
  std::uint64_t most_ = 0;       // the largest growth that was seen at once
  std::uint64_t live_ = 0;       // blocks
  int asking_ = 0;               // threads that are querying the driver about the pool for us
  bool destroyed_ = false;       // or is being destroyed, so its handle may be invalid
};

}  // namespace ration::policy

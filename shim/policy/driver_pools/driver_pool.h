// A memory pool of the driver's, and what the driver says about it. What the graphs of a device allocate is one, too.
// Layer: policy/driver_pools. Threads: any; what is charged for it changes under the lock of StreamPools.
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
  // The memory of a device that its graphs share. A launch takes none that finds all that its graph had at its last
  // launch: nothing was lost since, and no other graph ran. A trim comes only where no launch relies on what is there.
  struct Graphs {
    explicit Graphs(CUdevice its_device) : device(its_device) {}
    const CUdevice device;
    std::atomic<std::uint64_t> losses{0};      // how often memory may have gone back to the device
    std::atomic<int> relying{0};               // launches under way that rely on what is there
    std::atomic<bool> owed{false};             // a trim for the last of these
    std::atomic<std::uint64_t> latest{0};      // the number of the graph that ran last, having relied on nothing
    std::atomic<CUstream> stream{nullptr};     // in which it ran
    std::atomic<std::uint64_t> live_bytes{0};  // of blocks that launches have left, in whole units
    // Of these blocks, in the books: they end with the last context of the device, which a Context alone does not tell.
    const ContextRef owner = std::make_shared<Context>();

    // Between a launch's look at what is there and its end. After the last one a trim comes that was owed.
    void begin_relying() { relying.fetch_add(1); }
    void end_relying();
    // By the program or by us: now, or as soon as no launch relies on what is there.
    CUresult trim();
  };

  DriverPool(CUmemoryPool its_handle, int its_device, std::uint64_t its_cap = 0,
             std::unique_ptr<Graphs> its_graphs = {})
      : handle(its_handle), device(its_device), cap(its_cap), graphs(std::move(its_graphs)) {}
  const CUmemoryPool handle;
  const int device;                      // ordinal; -1: its memory is the host's
  const std::uint64_t cap;               // what it may hold at the most; 0: not known
  const std::unique_ptr<Graphs> graphs;  // nullptr: a pool of cuMemAllocAsync

  // As the driver says; 0: it does not.
  std::uint64_t reserved_bytes() const { return reserved().value_or(0); }
  std::uint64_t used_bytes() const;  // UINT64_MAX: the driver does not say
  // What it holds beyond its live blocks; 0: the driver does not say. REQUIRES: no thread destroys it.
  std::uint64_t idle_bytes() const;
  std::optional<std::uint64_t> reserved() const;

 private:
  friend class StreamPools;
  std::uint64_t charged_ = 0;    // bounds of calls in flight included
  std::uint64_t in_flight_ = 0;  // by which the calls in flight may let it grow
  std::uint64_t completed_ = 0;  // the same of all calls that ever succeeded
  std::uint64_t relied_ = 0;     // of in_flight_, what those rely on that share: it is in the pool already
  int to_cap_ = 0;               // calls in flight that rely on the cap
  std::uint64_t falls_ = 0;      // how often the charge fell to an answer of the driver
  std::uint64_t reserved_ = 0;   // the driver's latest figure
  std::uint64_t step_ = 0;       // that divides all growth that was seen; 0: none was
  std::uint64_t most_ = 0;       // by which it was seen to grow at once
  std::uint64_t live_ = 0;       // blocks
  int asking_ = 0;               // threads that query the driver about it unasked by the program
  bool destroyed_ = false;       // or being destroyed: its handle may be invalid
};

}  // namespace ration::policy

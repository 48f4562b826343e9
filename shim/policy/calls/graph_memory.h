// Memory that graphs allocate. The limit is enforced at the call in which the driver takes the memory.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
//
// A driver from 2026 takes no memory when it instantiates a graph. The first launch or upload takes the most that the
// graph has at one time, from memory that all graphs of the device share and that only a trim gives back (seen on an
// H100 with driver 580). Another driver may take the memory at the instantiation. Ration assumes this until it sees
// that the driver takes none there; it tests this with a small graph if the program's first graph would not fit.
// Design: design/charging.md#graphs
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "policy/calls/address_book.h"
#include "policy/devices/request.h"
#include "policy/driver_pools/graph_needs.h"

namespace ration::policy {

struct CallParts;

class GraphMemory {
 public:
  explicit GraphMemory(const CallParts &parts) : parts_(parts) {}

  // Called when a graph of the program has received an allocation node.
  void note_allocation() noexcept;
  // Whether any executable graph that allocates exists; without one, launches need not call this class.
  bool holds_any() const { return count_.load(std::memory_order_relaxed) != 0; }

  // `flags`: the flags of the driver's call, some of which make that call take the memory too.
  CUresult instantiate(const char *api, CUgraph graph, std::uint64_t flags, CUgraphExec *exec, DriverCall call);
  enum class Run : unsigned char { launch, upload };
  CUresult run(Run kind, const char *api, CUgraphExec exec, CUstream stream, DriverCall call);
  CUresult update(CUgraphExec exec, CUgraph graph, DriverCall call);
  CUresult destroy(CUgraphExec exec, DriverCall call);
  CUresult trim(const char *api, CUdevice device, DriverCall call);

  struct Part {
    GraphNeed need;
    StreamPools::PoolRef pool;                           // nullptr: the driver gives no figure; memory stays charged
    std::uint64_t left_bytes = 0;                        // bytes of blocks that a launch leaves, in whole units
    std::atomic<std::uint64_t> enough{UINT64_MAX};       // pool bytes that sufficed at a run; the graph needs no more
    std::atomic<std::uint64_t> losses_seen{UINT64_MAX};  // Graphs::losses at the latest run that reserved memory
  };
  // An executable graph that allocates.
  struct Exec {
    std::uint64_t number = 0;
    std::vector<std::unique_ptr<Part>> parts;  // one for each device
    GraphNeeds needs;
    bool frees_at_launch = false;  // a launch frees what the launch before it left
  };
  struct Call {
    const char *api;
    CUgraphExec exec;  // nullptr: it is being instantiated
    CUstream stream;
    bool launches;
  };

 private:
  // The call in which this driver takes the memory.
  enum class Taken : unsigned char { unknown, instantiating, running };
  using ExecRef = std::shared_ptr<Exec>;
  using Execs = std::map<CUgraphExec, ExecRef>;

  ExecRef describe(GraphNeeds needs, bool frees_at_launch);
  ExecRef find(CUgraphExec exec);
  void enter(Execs::node_type node) noexcept;
  CUresult instantiate_as(const Call &of, Exec &exec, bool uploads, DriverCall call);
  // Whether this driver is known to take no memory at the instantiation. Tests it if the graph would otherwise not fit.
  bool takes_at_run(const char *api, const Exec &exec);
  void probe(const char *api, Part &part);
  CUresult run(const Call &of, Exec &exec, DriverCall call);
  // Called before and after a launch, which may leave blocks and may free those of other graphs. Blocks that the launch
  // leaves count as live from its beginning.
  void begin_launch(const Exec &exec) noexcept;
  void end_launch(const char *api, const Exec &exec, bool success);
  // Called after a graph that needs `bytes` was instantiated; `before`: what the pool held before that.
  void learn(const StreamPools::Pool &pool, std::uint64_t bytes, std::uint64_t before) noexcept;

  const CallParts &parts_;
  std::atomic<Taken> taken_{Taken::unknown};
  std::atomic<std::uint64_t> last_number_{0};
  std::atomic<std::size_t> count_{0};
  RankedMutex mutex_{Rank::kGraphs};
  Execs execs_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy

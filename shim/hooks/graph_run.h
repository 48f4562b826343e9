// Launches or uploads a graph through the driver, once the memory that the graph allocates has been reserved.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"
#include "policy/calls/graph_memory.h"

namespace ration::hooks {

// True if any executable graph may allocate memory. If not, launches and uploads go straight to the driver.
inline bool graphs_hold_memory() {
  return runtime::Runtime::existing() != nullptr && runtime::family<policy::GraphMemory>->holds_any();
}

template <class Slot>
class GraphRun {
 public:
  // `meant`: the stream that a null stream means in this variant of the call.
  GraphRun(policy::GraphMemory::Run kind, const Slot &slot, const char *api, CUstream meant)
      : kind_(kind), slot_(slot), api_(api), meant_(meant) {}
  bool present() const { return slot_.present(); }
  CUresult operator()(CUgraphExec exec, CUstream stream) const {
    if (!graphs_hold_memory()) [[likely]] {
      return slot_(exec, stream);
    }
    return forwarding<policy::GraphMemory>(
        slot_,
        [&](policy::GraphMemory &memory, const auto &call) { return memory.run(kind_, api_, exec, meant_, call); },
        exec, stream);
  }

 private:
  policy::GraphMemory::Run kind_;
  const Slot &slot_;
  const char *api_;
  CUstream meant_;
};

template <class Slot>
GraphRun<Slot> launching(const Slot &slot, const char *api, CUstream meant) {
  return {policy::GraphMemory::Run::launch, slot, api, meant};
}

template <class Slot>
GraphRun<Slot> uploading(const Slot &slot, const char *api, CUstream meant) {
  return {policy::GraphMemory::Run::upload, slot, api, meant};
}

}  // namespace ration::hooks

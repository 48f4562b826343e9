// The driver's call of a launch or an upload, in whose place the memory of graphs that allocate is reserved first.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"
#include "policy/calls/graph_memory.h"

namespace ration::hooks {

// Whether any executable graph may allocate: else its calls are the driver's alone.
inline bool graphs_hold_memory() {
  return runtime::Runtime::existing() != nullptr && runtime::family<policy::GraphMemory>->holds_any();
}

template <class Slot>
class GraphRun {
 public:
  // `meant`: the stream that the flavour of the slot means.
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

// The driver's call of a launch or an upload, in whose place the memory of graphs that allocate is reserved first.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"
#include "policy/calls/graph_memory.h"

namespace ration::hooks {

template <class Slot>
class GraphRun {
 public:
  // `meant`: the stream that the flavour of the slot means.
  GraphRun(const Slot &slot, const char *api, CUstream meant) : slot_(slot), api_(api), meant_(meant) {}
  bool present() const { return slot_.present(); }
  CUresult operator()(CUgraphExec exec, CUstream stream) const {
    if (runtime::Runtime::existing() == nullptr || !runtime::family<policy::GraphMemory>->holds_any()) [[likely]] {
      return slot_(exec, stream);
    }
    return forwarding<policy::GraphMemory>(
        slot_,
        [&](policy::GraphMemory &memory, const auto &call) { return memory.run(api_, exec, meant_, call); }, exec,
        stream);
  }

 private:
  const Slot &slot_;
  const char *api_;
  CUstream meant_;
};

}  // namespace ration::hooks

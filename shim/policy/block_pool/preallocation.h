// What a device's first context takes before its first request, or once so much lives there.
// Layer: policy/block_pool. Threads: any; one preallocates, the others wait for it.
#pragma once

#include "policy/block_pool/backing.h"

namespace ration::policy {

class Preallocator {
 public:
  explicit Preallocator(Room &room) : room_(room) {}

  // Before a request is served: preallocates where it is time to.
  void prepare(const PoolCall &call);

 private:
  void preallocate(const PoolCall &call);

  Room &room_;
};

}  // namespace ration::policy

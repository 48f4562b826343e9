// Preallocates in a device's first context, before its first request or once a planned number of bytes is live there.
// Layer: policy/block_pool. Threads: any; one preallocates, the others wait for it.
#pragma once

#include "policy/block_pool/backing.h"

namespace ration::policy {

class Preallocator {
 public:
  Preallocator(Devices &devices, Room &room) : devices_(devices), room_(room) {}

  // Called before a request is served; preallocates if that is due.
  void prepare(const PoolCall &call);

 private:
  void preallocate(const PoolCall &call);

  Devices &devices_;
  Room &room_;
};

}  // namespace ration::policy

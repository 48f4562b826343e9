// One call of the program that asks for device memory.
// Layer: policy. A value.
#pragma once

#include <cstdint>

#include "events/event.h"

namespace ration::policy {

struct Request {
  const char *api;            // the export that was called
  std::uint64_t requested;    // bytes that the program asked for
  std::uint64_t upper_bound;  // bytes that the driver may take for it, or a pool's block must have
  const void *caller;         // return address of the program's call
  bool pooled = false;        // a block of a pool will do, and nothing but memory can be wrong with the request
  events::Kind kind = events::Kind::device;
  bool charged = true;  // counts against the limit; else it is only written down
};

}  // namespace ration::policy

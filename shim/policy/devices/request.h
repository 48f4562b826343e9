// One call of the program that asks for device memory, and the driver calls that serve it.
// Layer: policy/devices. Values; the function references live as long as the hook's call.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "driver/abi.h"
#include "events/event.h"

namespace ration::policy {

struct Request {
  const char *api;            // the function that the program called
  std::uint64_t requested;    // bytes that the program asked for
  std::uint64_t upper_bound;  // bytes that the driver may take for it, or that a pool's block must have
  const void *caller;         // return address of the program's call
  bool pooled = false;        // may come from a pool, because only lack of memory can make it fail
  events::Kind kind = events::Kind::device;
  bool exact = true;           // `upper_bound` is what the driver takes
  bool charged = true;         // counts against the limit; if not, it is only recorded
  CUstream stream = nullptr;   // the stream of a stream-ordered call; null: not a stream-ordered call
  std::uint64_t begun_ns = 0;  // when the call began, if it may wait for other members; else 0
  bool in_holes_only = false;  // a pool of slabs must not grow for it if other processes use the device
  bool invalid = false;        // the driver refuses it regardless of memory, and so is asked even beyond the limit
};

// The memory that one driver call obtained, by its address or the value of its handle.
struct Obtained {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};

// The driver's call that allocates, the driver's call that undoes it, and any other driver call for the program.
using Act = FunctionRef<CUresult(Obtained &)>;
using Undo = FunctionRef<CUresult(CUdeviceptr address)>;
using DriverCall = FunctionRef<CUresult()>;

}  // namespace ration::policy

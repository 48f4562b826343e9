// One call of the program that asks for device memory, and the driver calls that serve it.
// Layer: policy/devices. Values; the function references live as long as the hook's call.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "driver/abi.h"
#include "events/event.h"

namespace ration::policy {

struct Request {
  const char *api;            // the export that was called
  std::uint64_t requested;    // bytes that the program asked for
  std::uint64_t upper_bound;  // bytes that the driver may take for it, or a pool's block must have
  const void *caller;         // return address of the program's call
  bool pooled = false;        // may come from a pool: nothing but memory can be wrong with the request
  events::Kind kind = events::Kind::device;
  bool exact = true;           // `upper_bound` is what the driver takes
  bool charged = true;         // counts against the limit; else it is recorded only
  CUstream stream = nullptr;   // that a stream-ordered call means; null: of no such call
  std::uint64_t begun_ns = 0;  // of the call, where it may wait for other members; else 0
  bool in_holes_only = false;  // a pool of slabs must not grow for it beside other processes
  bool invalid = false;        // the driver refuses it whatever memory there is; it is asked also beyond the limit
};

// What one driver call obtained: an address, or a handle's value.
struct Obtained {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};

// One real driver call that obtains something; one that gives it back; any other call of the program's.
using Act = FunctionRef<CUresult(Obtained &)>;
using Undo = FunctionRef<CUresult(CUdeviceptr address)>;
using DriverCall = FunctionRef<CUresult()>;

}  // namespace ration::policy

// Makes room for memory that the driver takes on its own account: contexts, code, stacks. A pool that was preallocated
// or has kept freed memory must not cause a call to fail that the driver alone would have served.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/room.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

// Called after `call` found no memory on the device. Gives back unused memory of the pools, first `need.bytes` of it
// and then all, and finally asks others; tries the call again after each of these steps. `need.bytes` is 0 if it is
// unknown how much the call takes. Records the refusal if the call still fails.
CUresult try_with_room(const CallParts &parts, const Room::Need &need, Room::Patience patience, DriverCall call);
// Called after a charge that no limit could refuse. If a limit is exceeded, gives back that much idle memory.
void return_excess(const CallParts &parts, const char *api, int device) noexcept;

}  // namespace ration::policy

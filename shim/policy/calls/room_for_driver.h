// Room for what the driver takes on its own account: contexts, code, stacks. A pool that was preallocated, or that kept
// what was freed, must not cost the program a call that the driver alone would have served.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/room.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

// After `call` found no memory on the device: what the pools hold and do not use goes back, `need.bytes` of it, then
// all, each before another try. 0: it is not known how much the call takes. A refusal that remains is recorded.
CUresult try_with_room(const CallParts &parts, const Room::Need &need, Room::Patience patience, DriverCall call);
// After a charge that no limit could refuse: idle memory goes back as far as a limit is exceeded.
void return_excess(const CallParts &parts, const char *api, int device) noexcept;

}  // namespace ration::policy

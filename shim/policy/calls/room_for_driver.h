// Room for what the driver takes on its own account: contexts, code, stacks. A pool that was preallocated, or that kept
// what was freed, must not cost the program a call that the driver alone would have served.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/calls/admission.h"

namespace ration::policy {

class RoomForDriver {
 public:
  RoomForDriver(ledger::Ledger &ledger, AsyncPools &async, RoomMaker &room, Admission &admission)
      : ledger_(ledger), async_(async), room_(room), admission_(admission) {}

  // After `call` found no memory on the device: what the pools hold and do not use goes back, `bytes` of it, then all,
  // each before another try. 0: it is not known how much the call takes. A refusal that remains is recorded.
  // `patience` as Room's.
  CUresult try_again(const char *api, int device, std::uint64_t bytes, Room::Patience patience, DriverCall call);
  // After a charge that no limit could refuse: idle memory goes back as far as a limit is exceeded.
  void return_excess(const char *api, int device) noexcept;

 private:
  bool give_back(const char *api, int device, std::uint64_t bytes, Room::Patience patience) noexcept;
  void record(const char *api, int device, std::uint64_t bytes) noexcept;

  ledger::Ledger &ledger_;
  AsyncPools &async_;
  RoomMaker &room_;
  Admission &admission_;
};

}  // namespace ration::policy

// Enforces the limit on driver calls that take memory: reserves, acts and commits. A request that does not fit is
// denied, and the reason is logged.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <optional>

#include "ledger/ledger.h"
#include "policy/block_pool/room.h"
#include "policy/calls/address_book.h"
#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class Admission {
 public:
  explicit Admission(const CallParts &parts) : parts_(parts) {}

  // The current context and its device. The device's size is known afterwards if the driver reports it.
  Contexts::Current current();
  // Runs `act` only to get the driver's own error. If the driver serves the request nevertheless, undoes it and returns
  // OUT_OF_MEMORY.
  static CUresult refuse_as_driver(Act act, Undo undo);

  // Whether the request's upper bound fits, if need be after freeing other memory. `patience`: whether to wait briefly.
  bool has_room(const Request &request, const Contexts::Current &where, Room::Patience patience = Room::Patience::none);
  // Reserves `request.upper_bound` bytes, runs `act`, and commits the memory obtained. If denied, returns OUT_OF_MEMORY
  // and holds nothing. The driver's own error is returned unchanged. `surplus`, for calls that may commit more than is
  // needed, gets a transit, which the caller ends once the excess is released.
  // Design: design/charging.md#reserve-first
  CUresult admit(const Request &request, const Contexts::Current &where, Act act, Undo undo, Obtained &obtained,
                 std::optional<ledger::Transit> *surplus = nullptr);
  // Like admit(), and also enters the block in a book. Writes `*key` only on success.
  CUresult obtain(AddressBook &book, const Request &request, const Contexts::Current &where, Act act, Undo undo,
                  CUdeviceptr *key);
  // Like obtain(), for a block that the driver itself allocates. Like a pool's block, it is charged in whole units,
  // because the driver rounds up to these: otherwise the rest of a limit would be enough for very many blocks of one
  // byte. The last block may be charged less, so that the limit can be used to the last byte.
  // Design: design/charging.md#whole-units
  CUresult obtain_in_units(AddressBook &book, Request request, const Contexts::Current &where, Act act, Undo undo,
                           CUdeviceptr *key);
  // Like obtain_in_units(), in the current context; refuses if the limit is unknown. A request that is not charged is
  // not rounded, and gets room as in act_with_room().
  CUresult obtain_here(AddressBook &book, const Request &request, Act act, Undo undo, CUdeviceptr *key);
  // Enters a block of a driver's pool, and charges the bytes that the pool then reserves. `bytes`: the block's size.
  CUresult enter_pooled(const StreamPools::PoolRef &pool, const Request &request, const Contexts::Current &where,
                        const ContextRef &owner, std::uint64_t bytes, Undo undo, CUdeviceptr obtained,
                        CUdeviceptr *address);

  // Runs `act`, which takes device memory that is not charged. If the driver has no memory left, memory that is free
  // elsewhere goes back to the device, and `act` runs again.
  CUresult act_with_room(const Request &request, const Contexts::Current &where, Act act, Obtained &obtained);

  // Whether a configured fault refuses the request; if so, records the refusal. False if the driver would refuse the
  // request before it needs memory.
  bool refuses_on_purpose(const Request &request, const Contexts::Current &where);

  CUresult deny(const Request &request, const Contexts::Current &where, events::Reason reason);
  // `needed`: bytes that must be free for the request. `sharing`: a handle for other processes was refused, not memory.
  void record_oom(const char *api, std::uint64_t requested, std::uint64_t needed, int device, events::Reason reason,
                  const Context *of, bool sharing = false);

 private:
  const CallParts &parts_;
};

// cuMemFree_v2, which undoes every allocation that has an address.
CUresult undo_free(CUdeviceptr address);

}  // namespace ration::policy

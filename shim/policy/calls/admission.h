// Holds a driver call that takes memory to the limit: reserve, act, commit; else a denial with its reason in the log.
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

  // The current context, and its device with its size known as far as the driver tells.
  Contexts::Current current();
  // The driver refuses in its own words; what it serves all the same goes back: OUT_OF_MEMORY.
  static CUresult refuse_as_driver(Act act, Undo undo);

  // Whether the request's bound fits, if need be into what can be made free: without a wait, or briefly waited for.
  bool has_room(const Request &request, const Contexts::Current &where, Room::Patience patience = Room::Patience::none);
  // Reserves `request.upper_bound`, runs `act`, commits what it obtained. Denied: OUT_OF_MEMORY, and nothing is held.
  // The driver's own error goes back verbatim. `surplus`, where what is committed may be more than is needed: gets a
  // transit, which the caller ends once that is released.
  // Design: design/charging.md#reserve-first
  CUresult admit(const Request &request, const Contexts::Current &where, Act act, Undo undo, Obtained &obtained,
                 std::optional<ledger::Transit> *surplus = nullptr);
  // The same, and enters it in a book. Only success writes `*key`.
  CUresult obtain(AddressBook &book, const Request &request, const Contexts::Current &where, Act act, Undo undo,
                  CUdeviceptr *key);
  // The same for a block of the driver's own. Charged in units, to which the driver rounds up, as a pool does: what
  // is left of a limit could be very many blocks of one byte. The last may be charged less, so that the limit can be
  // used to the last byte.
  // Design: design/charging.md#whole-units
  CUresult obtain_in_units(AddressBook &book, Request request, const Contexts::Current &where, Act act, Undo undo,
                           CUdeviceptr *key);
  // The same in the current context; refuses where the limit is unknown. What is not charged is exact, and gets room as
  // in act_with_room().
  CUresult obtain_here(AddressBook &book, const Request &request, Act act, Undo undo, CUdeviceptr *key);
  // Charges a driver pool's block by what the pool reserves, and enters it; `bytes` of it are the program's.
  CUresult enter_pooled(const StreamPools::PoolRef &pool, const Request &request, const Contexts::Current &where,
                        const ContextRef &owner, std::uint64_t bytes, Undo undo, CUdeviceptr obtained,
                        CUdeviceptr *address);

  // Runs `act`, which takes of the device's memory and is not charged. Where the driver has none left, what is free
  // elsewhere goes back to the device first.
  CUresult act_with_room(const Request &request, const Contexts::Current &where, Act act, Obtained &obtained);

  // Whether a fault refuses the request; it is recorded then. Not where the driver would not have got as far as memory.
  bool refuses_on_purpose(const Request &request, const Contexts::Current &where);

  CUresult deny(const Request &request, const Contexts::Current &where, events::Reason reason);
  // `needed`: what must be free for the request. `sharing`: no memory was refused but a handle for other processes.
  void record_oom(const char *api, std::uint64_t requested, std::uint64_t needed, int device, events::Reason reason,
                  const Context *of, bool sharing = false);

 private:
  const CallParts &parts_;
};

// cuMemFree_v2, the undo of everything that has an address.
CUresult undo_free(CUdeviceptr address);

}  // namespace ration::policy

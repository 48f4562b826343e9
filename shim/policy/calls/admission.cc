#include "policy/calls/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/saturating.h"
#include "base/wait.h"
#include "policy/calls/call_parts.h"
#include "policy/devices/returning_memory.h"

namespace ration::policy {
namespace {

using driver::real;

events::Reason reason_of(ledger::ReserveOutcome outcome) {
  return outcome == ledger::ReserveOutcome::over_limit ? events::Reason::limit : events::Reason::group;
}

constexpr std::size_t kMostHolders = 8;

void take_holders(std::vector<ledger::Holder> &&holders, events::Oom &oom) {
  for (ledger::Holder &each : holders) {
    if (oom.holders.size() == kMostHolders) {
      ++oom.more_holders;
      continue;
    }
    oom.holders.push_back({each.pid, std::move(each.program), each.reserved, each.used, each.guarantee});
  }
}

// Fills in the group that leaves least, and its largest members.
// Design: design/groups.md#full-groups
void explain_group(const ledger::Account &account, events::Oom &oom) {
  events::GroupState &group = oom.group;
  int place = -1;
  ledger::Membership *const tightest = account.tightest(place);
  if (tightest == nullptr) {
    return;
  }
  if (const std::string trouble = tightest->trouble(); !trouble.empty()) {
    events::say(ledger::group_label(tightest->kind(), tightest->name()) + ": " + trouble);
  }
  group.name = (tightest->kind() == ledger::GroupKind::kTree        ? "tree:"
                : tightest->kind() == ledger::GroupKind::kContainer ? "container:"
                                                                    : "") +
               tightest->name();
  group.limit = tightest->limit(place);
  group.claimed = tightest->total(place);
  std::vector<ledger::Holder> holders = tightest->holders(place);
  for (const ledger::Holder &holder : holders) {
    group.reserved += holder.reserved;
  }
  take_holders(std::move(holders), oom);
}

// The driver's pools count whole units; the log counts what was asked for.
std::uint64_t without_rounding(std::uint64_t used, const events::DeviceTally &tally) {
  const std::uint64_t live = tally.live_bytes.load(std::memory_order_relaxed);
  const std::uint64_t frees = tally.frees.load(std::memory_order_relaxed);
  const std::uint64_t blocks = tally.allocs.load(std::memory_order_relaxed) - frees;
  const bool rounded = used > live && used - live < blocks * StreamPools::kUnitBytes;
  return rounded ? live : used;
}

// The reason by the figures. The try that failed last may have been for more than the request: for a slab, or a step of
// a pool. `left`: what is left of the limits.
events::Reason cause_of(const events::Oom &oom, std::uint64_t left) {
  const std::uint64_t held_free = minus_or_zero(oom.reserved, oom.used);
  const std::uint64_t device_free = oom.device_free.value_or(0);
  const auto fits = [&](std::uint64_t bytes) { return bytes >= oom.requested || held_free >= oom.requested - bytes; };
  switch (oom.reason) {
    case events::Reason::limit:
    case events::Reason::group:
      if (left >= oom.requested || !fits(left)) {
        return oom.reason;
      }
      return fits(device_free) ? events::Reason::pool_holds : events::Reason::device;
    case events::Reason::device:
      return device_free < oom.requested && fits(device_free) && fits(left) ? events::Reason::pool_holds : oom.reason;
    default:
      return oom.reason;
  }
}

// Answers instead of the driver's call, which a capture may forbid before memory matters. A pool would have served its
// block nevertheless.
CUresult deny_reserve(const CallParts &parts, const Request &request, const Contexts::Current &where,
                      ledger::ReserveOutcome outcome) {
  const bool ordered = request.kind == events::Kind::pool;
  if (const CUresult wrong = ordered ? wrong_with_stream(request.stream) : CUDA_SUCCESS; wrong != CUDA_SUCCESS) {
    return wrong;
  }
  if (!request.pooled && request.kind != events::Kind::vmm && parts.captures.running()) {
    if (const CUresult forbidden = forbidden_by_captures(); forbidden != CUDA_SUCCESS) {
      return forbidden;
    }
  }
  const std::uint64_t held_free =
      parts.pools.returning.free_bytes(where.device) + parts.async_pools.free_bytes(where.device);
  const bool held = held_free > 0 && request.upper_bound <= parts.account(where.device).available() + held_free;
  const bool unlimited =
      outcome == ledger::ReserveOutcome::over_limit && parts.account(where.device).limit() == UINT64_MAX;
  const events::Reason reason = unlimited ? events::Reason::device : reason_of(outcome);
  return parts.admission.deny(request, where, held ? events::Reason::pool_holds : reason);
}

// For a request that the driver will refuse however much memory there is: returns the driver's own error.
CUresult ask_beyond_limit(const CallParts &parts, const Request &request, const Contexts::Current &where,
                          ledger::ReserveOutcome outcome, Act act, Undo undo) {
  Obtained obtained;
  const CUresult result = act(obtained);
  if (result == CUDA_SUCCESS) {  // this driver accepts what no other did
    undo(obtained.address);
    return deny_reserve(parts, request, where, outcome);
  }
  if (result != CUDA_ERROR_INVALID_CONTEXT) {
    parts.journal.count_failed_alloc();
  }
  return result;
}

bool deferred_could_serve(const CallParts &parts, const Request &request, int device) {
  if (parts.async_pools.deferred_bytes(device) == 0 || request.upper_bound > parts.account(device).limit()) {
    return false;
  }
  const std::uint64_t ours = parts.async_pools.free_bytes(device);
  return ours >= request.upper_bound || parts.room.within_reach(device) >= request.upper_bound - ours;
}

// Reserves the request's bound. `returned` gets what mode async had returned to its pool before the last try.
bool reserve(const CallParts &parts, const Request &request, const Contexts::Current &where, std::uint64_t &returned,
             ledger::ReserveOutcome &outcome, std::optional<ledger::Transit> *surplus) {
  ledger::Account &account = parts.account(where.device);
  if (parts.devices.heed(where.device)) {
    parts.pools.gifts.heed_orders("set");
  }
  auto effort = ledger::Effort::kReclaimFromDead;
  std::uint64_t begun_ns = request.begun_ns;
  Waiter waiter;
  for (;;) {
    const std::uint64_t ended = account.transits().ended();
    returned = parts.async_pools.returned(where.device);
    if (surplus != nullptr) {
      surplus->emplace(account.transits());
    }
    outcome = account.reserve(request.upper_bound, effort);
    if (outcome == ledger::ReserveOutcome::granted) {
      if (surplus != nullptr) {
        (*surplus)->hold();
      }
      return true;
    }
    if (surplus != nullptr) {
      surplus->reset();  // ended, because all threads wait for transits that hold something
    }
    if (where.error != CUDA_SUCCESS || request.invalid) {
      return false;  // the driver will refuse before it needs memory
    }
    begun_ns = begun_ns != 0 ? begun_ns : now_ns();
    if (parts.async_pools.release_retained(where.device) ||
        parts.room.make_room({request.api, where.device, request.upper_bound, nullptr, 0, begun_ns},
                             Room::Patience::briefly) ||
        (deferred_could_serve(parts, request, where.device) &&
         parts.async_pools.reclaim(request.api, where.device, returned))) {
      continue;
    }
    if (account.transits().may_have_refused(ended)) {
      waiter.pause();
      effort = ledger::Effort::kImmediate;  // a search for the dead by each thread would be a change for the others
    } else if (effort == ledger::Effort::kImmediate) {
      effort = ledger::Effort::kReclaimFromDead;
    } else {
      return false;
    }
  }
}

// Called after the driver had no memory: gives back to the device what is free elsewhere and tries again, as often as
// that helps. `returned` as in reserve().
CUresult act_again(const CallParts &parts, const Request &request, const Contexts::Current &where, Act act,
                   Obtained &obtained, std::uint64_t &returned) {
  const Room::Need need{request.api, where.device, request.upper_bound};
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (Room::Retries retries;
       result == CUDA_ERROR_OUT_OF_MEMORY && retries.allow() && parts.room.give_back(need, Room::Patience::briefly);) {
    result = act(obtained);
  }
  while (result == CUDA_ERROR_OUT_OF_MEMORY && deferred_could_serve(parts, request, where.device) &&
         parts.async_pools.reclaim(request.api, where.device, returned)) {
    returned = parts.async_pools.returned(where.device);
    parts.room.give_back(need, Room::Patience::none);
    result = act(obtained);
  }
  return result;
}

}  // namespace

CUresult undo_free(CUdeviceptr address) {
  return real.cuMemFree_v2.present() ? real.cuMemFree_v2(address) : CUDA_ERROR_NOT_FOUND;
}

Contexts::Current Admission::current() {
  Contexts::Current where = parts_.contexts.current();
  parts_.devices.learn_total(where.device);
  return where;
}

CUresult Admission::refuse_as_driver(Act act, Undo undo) {
  Obtained obtained;
  const CUresult result = act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  undo(obtained.address);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void Admission::record_oom(const char *api, std::uint64_t requested, std::uint64_t needed, int device,
                           events::Reason reason, const Context *of, bool sharing) {
  const ledger::Account &account = parts_.account(device);
  const std::uint64_t limit = account.limit() == UINT64_MAX ? parts_.devices.total_on(device) : account.limit();
  const std::optional<std::uint64_t> free_bytes = parts_.device_free(device);
  const std::uint64_t charged = account.charged();
  events::Oom event{device,  api,   requested,  reason,
                    charged, limit, free_bytes, std::min(account.available(), free_bytes.value_or(0))};
  event.reserved = charged;
  event.sharing = sharing;
  event.needed = needed;
  parts_.pools.explain(event, of);
  if (parts_.async_pools.used_bytes(device) + parts_.async_pools.free_bytes(device) != 0) {
    event.page_bytes = 0;  // the driver's pools keep memory in steps of their own
  }
  event.used -= std::min(event.used, parts_.async_pools.free_bytes(device));
  event.quarantined += parts_.async_pools.deferred_bytes(device);
  if (!sharing) {
    event.reason = cause_of(event, account.available());
  }
  if (parts_.async_pools.used_bytes(device) > 0) {
    event.used = without_rounding(event.used, parts_.journal.tally().devices[device]);
  }
  if (event.reason == events::Reason::group || event.reason == events::Reason::device) {
    parts_.pools.publication.publish(device);  // this process's own row is among those of the holders
  }
  if (event.reason == events::Reason::group) {
    explain_group(account, event);
  } else if (event.reason == events::Reason::device) {
    take_holders(account.holders(), event);
  }
  parts_.journal.record(event);
  parts_.pools.publication.publish(device);
}

bool Admission::refuses_on_purpose(const Request &request, const Contexts::Current &where) {
  if (!parts_.faults.any() || where.error != CUDA_SUCCESS || request.invalid || request.requested == 0 ||
      !parts_.faults.refuses(request.requested, request.caller)) {
    return false;
  }
  record_oom(request.api, request.requested, request.upper_bound, where.device, events::Reason::fault,
             where.context.get());
  return true;
}

CUresult Admission::deny(const Request &request, const Contexts::Current &where, events::Reason reason) {
  record_oom(request.api, request.requested, request.upper_bound, where.device, reason, where.context.get());
  return CUDA_ERROR_OUT_OF_MEMORY;
}

bool Admission::has_room(const Request &request, const Contexts::Current &where, Room::Patience patience) {
  return request.upper_bound <= parts_.account(where.device).available() ||
         parts_.room.make_room({request.api, where.device, request.upper_bound}, patience);
}

CUresult Admission::act_with_room(const Request &request, const Contexts::Current &where, Act act, Obtained &obtained) {
  std::uint64_t returned = parts_.async_pools.returned(where.device);
  const CUresult result = act(obtained);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? act_again(parts_, request, where, act, obtained, returned) : result;
}

CUresult Admission::admit(const Request &request, const Contexts::Current &where, Act act, Undo undo,
                          Obtained &obtained, std::optional<ledger::Transit> *surplus) {
  ledger::Account &account = parts_.account(where.device);
  const ledger::Change change(account.changes());
  ledger::ReserveOutcome reserved{};
  std::uint64_t returned = 0;
  // A request for zero bytes is the driver's to refuse, even in a process beyond its limit, where not even that fits.
  if (request.upper_bound != 0 && !reserve(parts_, request, where, returned, reserved, surplus)) {
    return where.error != CUDA_SUCCESS || request.invalid
               ? ask_beyond_limit(parts_, request, where, reserved, act, undo)
               : deny_reserve(parts_, request, where, reserved);
  }
  CUresult result = act(obtained);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    if (surplus != nullptr) {
      surplus->reset();  // ended, because what follows may wait for work
    }
    result = act_again(parts_, request, where, act, obtained, returned);
  }
  // The device is no longer full: the memory returned after the refusal, or a pool at its own cap refused, which
  // returning memory does not help. One more try decides.
  ReturningMemory returning(parts_.devices, where.device, account, request.upper_bound);
  for (bool is_full = true; result == CUDA_ERROR_OUT_OF_MEMORY && is_full && returning.expected();) {
    is_full = parts_.device_free(where.device).value_or(0) < request.upper_bound;
    account.release(request.upper_bound);
    returning.sleep();
    returned = parts_.async_pools.returned(where.device);
    reserved = account.reserve(request.upper_bound, ledger::Effort::kReclaimFromDead);
    if (reserved != ledger::ReserveOutcome::granted) {
      return deny(request, where, reason_of(reserved));
    }
    result = act(obtained);
  }
  if (result != CUDA_SUCCESS) {
    account.release(request.upper_bound);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      deny(request, where, events::Reason::device);
    } else if (result != CUDA_ERROR_INVALID_CONTEXT) {  // the runtime probes with no context and tries again
      parts_.journal.count_failed_alloc();
    }
    return result;
  }
  // The driver took more than the bound: the excess must fit under the limit, too.
  if (obtained.bytes > request.upper_bound) {
    reserved = account.reserve(obtained.bytes - request.upper_bound);
    if (reserved != ledger::ReserveOutcome::granted) {
      if (undo(obtained.address) == CUDA_SUCCESS) {
        account.release(request.upper_bound);
      }
      return deny(request, where, reason_of(reserved));
    }
  } else {
    account.commit(request.upper_bound, obtained.bytes);
  }
  return CUDA_SUCCESS;
}

CUresult Admission::obtain_in_units(AddressBook &book, Request request, const Contexts::Current &where, Act act,
                                    Undo undo, CUdeviceptr *key) {
  const ledger::Account &account = parts_.account(where.device);
  const std::uint64_t left = account.available();
  const std::uint64_t most = left >= request.upper_bound ? left : account.limit();
  const std::uint64_t whole = std::max(request.upper_bound, StreamPools::whole_units(request.upper_bound));
  const bool is_last = request.upper_bound >= StreamPools::kUnitBytes || request.upper_bound == most;
  request.upper_bound = is_last ? std::min(whole, std::max(request.upper_bound, most)) : whole;
  const auto act_whole = [&](Obtained &got) {
    const CUresult result = act(got);
    got.bytes = std::max(got.bytes, std::min(StreamPools::whole_units(got.bytes), request.upper_bound));
    return result;
  };
  return obtain(book, request, where, act_whole, undo, key);
}

CUresult Admission::obtain(AddressBook &book, const Request &request, const Contexts::Current &where, Act act,
                           Undo undo, CUdeviceptr *key) {
  const std::uint64_t start = parts_.journal.logging() ? now_ns() : 0;
  Obtained obtained;
  std::optional<ledger::Transit> surplus;
  const CUresult result =
      request.charged ? admit(request, where, act, undo, obtained, request.exact ? nullptr : &surplus) : act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  const Block block{obtained.bytes, where.device, where.context, request.kind, request.charged};
  const CUresult entered =
      parts_.books.enter(book, request, block, obtained.address, parts_.journal.logging() ? now_ns() - start : 0);
  if (entered == CUDA_SUCCESS) {
    *key = obtained.address;
  } else if (undo(obtained.address) == CUDA_SUCCESS) {  // nothing stays allocated that is not recorded
    parts_.books.discharge(block);
  }
  return entered;
}

CUresult Admission::obtain_here(AddressBook &book, const Request &request, Act act, Undo undo, CUdeviceptr *key) {
  if (request.charged && parts_.devices.limit_unknown()) {
    return refuse_as_driver(act, undo);
  }
  const Contexts::Current where = current();
  if (refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (request.charged) {
    return obtain_in_units(book, request, where, act, undo, key);
  }
  const auto act_or_deny = [&](Obtained &got) {
    const CUresult result = act_with_room(request, where, act, got);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? deny(request, where, events::Reason::device) : result;
  };
  return obtain(book, request, where, act_or_deny, undo, key);
}

CUresult Admission::enter_pooled(const StreamPools::PoolRef &pool, const Request &request,
                                 const Contexts::Current &where, const ContextRef &owner, std::uint64_t bytes,
                                 Undo undo, CUdeviceptr obtained, CUdeviceptr *address) {
  const auto give_back = [&] {
    undo(obtained);
    parts_.stream_pools.block_ended(*pool);
    parts_.room.wait_for_work(pool->device, [] { return false; });
    parts_.stream_pools.trim(request.api, pool->device);
  };
  if (const std::uint64_t missing = parts_.stream_pools.reconcile(request.api, *pool); missing > 0) {
    const ledger::ReserveOutcome more = parts_.account(pool->device).reserve(missing);
    if (more != ledger::ReserveOutcome::granted) {
      give_back();
      return deny(request, where, reason_of(more));
    }
    parts_.stream_pools.add(request.api, *pool, missing);
  }
  const Block block{bytes, pool->device, owner, events::Kind::pool, true, pool};
  const CUresult entered = parts_.books.enter(parts_.books.blocks, request, block, obtained, 0);
  if (entered != CUDA_SUCCESS) {
    give_back();
    return entered;
  }
  *address = obtained;
  return CUDA_SUCCESS;
}

}  // namespace ration::policy

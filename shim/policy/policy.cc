#include "policy/policy.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "policy/clock.h"
#include "policy/returning_memory.h"

namespace ration::policy {
namespace {

using driver::real;

// What the driver says is free on the current device; 0 where it does not say.
std::uint64_t device_free() {
  const RelaxedCapture relaxed;
  return really_free().value_or(0);
}

}  // namespace

Policy::Policy(const Options &options, LimitSource &limits, events::JournalOptions journal, std::string &problem)
    : options_(options),
      journal_(std::move(journal), problem),
      devices_(limits, ledger_),
      contexts_(devices_),
      pending_(ledger_),
      pools_(devices_, ledger_, journal_, contexts_, pending_, lanes_, options.synchronous_free, limits.state_folder()),
      imports_(pools_.progress(), limits.state_folder()) {}

void Policy::describe() {
  if (journal_.described() || devices_.all() == nullptr) {
    return;
  }
  int version = 0;
  if (real.cuDriverGetVersion.present()) {
    real.cuDriverGetVersion(&version);
  }
  journal_.describe(devices_.facts(), version);
}

void Policy::record_oom(const char *api, std::uint64_t requested, int device, events::Reason reason, const Context *of,
                        bool sharing) {
  const ledger::Account &account = ledger_.account(device);
  const Device *known = devices_.find(device);
  const std::uint64_t total = known != nullptr ? known->total.load(std::memory_order_relaxed) : 0;
  const std::uint64_t limit = account.limit() == UINT64_MAX ? total : account.limit();
  const std::uint64_t free_bytes = device_free();
  const std::uint64_t charged = account.charged();
  events::Oom event{device,  api,   requested,  reason,
                    charged, limit, free_bytes, std::min(account.available(), free_bytes)};
  event.reserved = charged;
  event.sharing = sharing;
  if (reason == events::Reason::group) {
    explain_group(account, event.group);
  }
  pools_.explain(event, of);
  journal_.record(event);
  pools_.tell(device);
}

// What `ration ps` would say of the group that leaves least.
void Policy::explain_group(const ledger::Account &account, events::GroupState &group) {
  int place = -1;
  const ledger::Membership *const tightest = account.tightest(place);
  if (tightest == nullptr) {
    return;
  }
  constexpr std::size_t kMostHolders = 8;
  group.name = (tightest->kind() == ledger::GroupKind::kTree ? "tree:" : "") + tightest->name();
  group.limit = tightest->limit(place);
  group.reserved = tightest->total(place);
  for (ledger::Holder &holder : tightest->holders(place, kMostHolders)) {
    group.holders.push_back({holder.pid, std::move(holder.program), holder.reserved});
  }
}

CUresult Policy::deny(const Request &request, const Contexts::Current &where, events::Reason reason) {
  record_oom(request.api, request.requested, where.device, reason, where.context.get());
  return CUDA_ERROR_OUT_OF_MEMORY;
}

events::Via Policy::via_of(const Request &request) const {
  return journal_.logging() && via_of_ != nullptr ? via_of_(request.caller) : events::Via::driver;
}

// Writes the block into the book and the log. Failing to do so gives it back: nothing is held that is not in the books.
CUresult Policy::enter(const Request &request, const Contexts::Current &where, const Obtained &obtained,
                       std::uint64_t duration_ns) {
  std::optional<Block> displaced;
  AddressBook::Inserted inserted{};
  try {
    pools_.settle(obtained.address, obtained.bytes);
    inserted = book_.insert(obtained.address, {obtained.bytes, where.device, where.context}, displaced);
  } catch (...) {
    if (real.cuMemFree_v2.present() && real.cuMemFree_v2(obtained.address) == CUDA_SUCCESS) {
      ledger_.account(where.device).release(obtained.bytes);
    }
    journal_.count_failed_alloc();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (displaced) {
    end_block(request.api, {obtained.address, *displaced});
  }
  if (inserted == AddressBook::Inserted::context_gone) {
    ledger_.account(where.device).release(obtained.bytes);
    return CUDA_SUCCESS;
  }
  journal_.record(events::Alloc{obtained.address, obtained.bytes, request.requested, where.device,
                                where.context->number, request.api, events::Kind::device, events::Source::driver,
                                via_of(request), duration_ns});
  pools_.tell_changes(where.device);
  if (!book_.announce(obtained.address)) {
    end_block(where.context->ended_by.load(std::memory_order_acquire),
              {obtained.address, {obtained.bytes, where.device, where.context}});
    book_.finish_end(obtained.address);
  }
  return CUDA_SUCCESS;
}

// The driver is not initialised, or gone, and refuses in its own words. Should it serve the call all the same, the
// block goes back: a limit that cannot be held is not ignored.
CUresult Policy::refuse_unknown(const std::function<CUresult(Obtained &)> &act) {
  Obtained obtained;
  const CUresult result = act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (real.cuMemFree_v2.present()) {
    real.cuMemFree_v2(obtained.address);
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Policy::allocate(const Request &request, const std::function<CUresult(Obtained &)> &act,
                          CUdeviceptr *address) {
  const bool pooled = request.pooled && !(options_.large_direct && request.upper_bound >= kLargeBytes);
  if (pooled && pools_.allocate_hit(request.upper_bound, address)) {
    return CUDA_SUCCESS;
  }
  describe();
  imports_.settle();
  if (devices_.limit_unknown()) {
    return refuse_unknown(act);
  }
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  if (!options_.pool || !pooled || where.error != CUDA_SUCCESS || !Pools::possible()) {
    return allocate_direct(request, where, act, address);
  }
  std::optional<events::Reason> denied;
  const CUresult result = pools_.allocate(request, where, via_of(request), address, denied);
  if (!denied) {
    if (result != CUDA_SUCCESS) {
      journal_.count_failed_alloc();
    }
    return result;
  }
  // A slab needs a granule more than its block: what fits to the last byte the driver can still serve by itself.
  if ((*denied == events::Reason::limit || *denied == events::Reason::group) &&
      request.upper_bound <= ledger_.account(where.device).available()) {
    return allocate_direct(request, where, act, address);
  }
  return deny(request, where, *denied);
}

CUresult Policy::allocate_direct(const Request &request, const Contexts::Current &where,
                                 const std::function<CUresult(Obtained &)> &act, CUdeviceptr *address) {
  ledger::Account &account = ledger_.account(where.device);
  ledger::ReserveOutcome reserved{};
  auto effort = ledger::Effort::kLookForDead;
  const auto granted = [&] {
    reserved = account.reserve(request.upper_bound, effort);
    return reserved == ledger::ReserveOutcome::granted;
  };
  const auto reason_of_refusal = [&] {
    return reserved == ledger::ReserveOutcome::over_limit ? events::Reason::limit : events::Reason::group;
  };
  while (!granted()) {
    if (!pools_.make_room(request.api, where.device, request.upper_bound)) {
      if (pools_.is_changing(where.device)) {
        sched_yield();
        effort = ledger::Effort::kAtOnce;  // a look for the dead by each thread would be a change for the others
        continue;
      }
      if (effort == ledger::Effort::kAtOnce) {
        effort = ledger::Effort::kLookForDead;
        continue;
      }
      // With nothing current the driver would not have got as far as memory.
      const std::uint64_t held_free = pools_.free_bytes(where.device);
      const bool held = held_free > 0 && request.upper_bound <= account.available() + held_free;
      return where.error != CUDA_SUCCESS
                 ? where.error
                 : deny(request, where, held ? events::Reason::pool_holds : reason_of_refusal());
    }
  }
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  Obtained obtained;
  CUresult result = act(obtained);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pools_.give_back(request.api, where.device)) {
    result = act(obtained);
  }
  for (ReturningMemory returning(account); result == CUDA_ERROR_OUT_OF_MEMORY && returning.expected();) {
    account.release(request.upper_bound);
    returning.nap();
    if (!granted()) {
      return deny(request, where, reason_of_refusal());
    }
    result = act(obtained);
  }
  if (result != CUDA_SUCCESS) {
    account.release(request.upper_bound);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      deny(request, where, events::Reason::device);
    } else if (result != CUDA_ERROR_INVALID_CONTEXT) {  // the runtime probes with no context and comes again
      journal_.count_failed_alloc();
    }
    return result;
  }
  // The driver took more than it was thought to: held to the limit all the same.
  if (obtained.bytes > request.upper_bound) {
    reserved = account.reserve(obtained.bytes - request.upper_bound);
    if (reserved != ledger::ReserveOutcome::granted) {
      if (real.cuMemFree_v2.present() && real.cuMemFree_v2(obtained.address) == CUDA_SUCCESS) {
        account.release(request.upper_bound);
      }
      return deny(request, where, reason_of_refusal());
    }
  } else {
    account.commit(request.upper_bound, obtained.bytes);
  }
  const CUresult entered = enter(request, where, obtained, journal_.logging() ? now_ns() - start : 0);
  if (entered == CUDA_SUCCESS) {
    *address = obtained.address;
  }
  return entered;
}

// The record first, then the bytes, then the address: whoever gets either again is logged behind it.
void Policy::end_block(const char *api, const AddressedBlock &block) {
  const auto &[address, held] = block;
  journal_.record(events::Free{address, held.size, held.device, held.context->number, api});
  ledger_.account(held.device).release(held.size);
  pools_.tell_changes(held.device);
}

// The driver refused to free it.
void Policy::keep_block(const AddressedBlock &block) {
  journal_.count_failed_free();
  if (!book_.cancel_end(block.first)) {
    end_block(block.second.context->ended_by.load(std::memory_order_acquire), block);
    book_.finish_end(block.first);
  }
}

CUresult Policy::free(const char *api, CUdeviceptr address, const std::function<CUresult()> &act) {
  if (pools_.free_hit(address)) {
    return CUDA_SUCCESS;
  }
  describe();
  if (address == 0) {
    journal_.count_null_free();
    return act();
  }
  if (const ContextRef owner = pools_.owner_of(address)) {
    return pools_.free(api, address, owner);
  }
  Block block;
  switch (book_.begin_end(address, block)) {
    case AddressBook::Found::ending_elsewhere:
      // Another thread is freeing it: forwarded now, this call could free whoever gets the address next.
      journal_.count_failed_free();
      return CUDA_ERROR_INVALID_VALUE;
    case AddressBook::Found::unknown: {
      const CUresult result = act();
      if (result != CUDA_SUCCESS) {
        journal_.count_failed_free();
      }
      return result;
    }
    case AddressBook::Found::begun:
      break;
  }
  const CUresult result = act();
  if (result != CUDA_SUCCESS) {
    keep_block({address, block});
    return result;
  }
  end_block(api, {address, block});
  book_.finish_end(address);
  return result;
}

CUresult Policy::free_in_stream(const char *api, CUdeviceptr address, CUstream stream,
                                const std::function<CUresult()> &act) {
  describe();
  if (const ContextRef owner = pools_.owner_of(address)) {
    return pools_.free_in_stream(api, address, stream, owner);
  }
  Block block;
  const AddressBook::Found found = address != 0 ? book_.begin_end(address, block) : AddressBook::Found::unknown;
  if (found == AddressBook::Found::ending_elsewhere) {
    journal_.count_failed_free();
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = act();
  if (result != CUDA_SUCCESS) {
    if (found == AddressBook::Found::begun) {
      keep_block({address, block});
    } else {
      journal_.count_failed_free();
    }
    return result;
  }
  if (found == AddressBook::Found::begun) {
    journal_.record(events::Free{address, block.size, block.device, block.context->number, api,
                                 reinterpret_cast<std::uintptr_t>(stream)});
    book_.finish_end(address);
    pending_.add(block.context, block.device, block.size, stream);
  }
  return result;
}

void Policy::present_memory(std::size_t *free_bytes, std::size_t *total_bytes) {
  describe();
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  const Device *device = devices_.find(where.device);
  if (device == nullptr) {
    return;
  }
  pending_.settle(where.device, false);
  const bool shown = options_.show_limit && device->limit_asked.load(std::memory_order_relaxed);
  const std::uint64_t limit = device->limit.load(std::memory_order_relaxed);
  if (free_bytes != nullptr) {
    ledger_.account(where.device).look_for_dead();
    // What our own pools hold is the program's to have; of the rest the limit and the device decide.
    const std::uint64_t obtainable = std::min<std::uint64_t>(*free_bytes, ledger_.account(where.device).available());
    const std::uint64_t total = device->total.load(std::memory_order_relaxed);
    *free_bytes = std::min(pools_.free_bytes(where.device) + obtainable, shown || total == 0 ? limit : total);
  }
  if (total_bytes != nullptr && shown) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, limit);
  }
}

void Policy::present_total(std::size_t *total_bytes, CUdevice handle) {
  describe();
  const Device *device = devices_.find_handle(handle);
  if (total_bytes != nullptr && device != nullptr && options_.show_limit &&
      device->limit_asked.load(std::memory_order_relaxed)) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, device->limit.load(std::memory_order_relaxed));
  }
}

}  // namespace ration::policy

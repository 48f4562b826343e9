// How anything that the driver allocates comes into the books and leaves them: the half of Policy behind every door.
// Layer: policy.
#include <optional>

#include "base/wait.h"

#include "base/clock.h"
#include "policy/calls/policy.h"
#include "policy/devices/returning_memory.h"

namespace ration::policy {

using driver::real;

CUresult Policy::undo_free(CUdeviceptr address) {
  return real.cuMemFree_v2.present() ? real.cuMemFree_v2(address) : CUDA_ERROR_NOT_FOUND;
}

CUresult Policy::deny(const Request &request, const Contexts::Current &where, events::Reason reason) {
  record_oom(request.api, request.requested, where.device, reason, where.context.get());
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The driver is not initialised, or gone, and refuses in its own words. Should it serve the call all the same, the
// block goes back: a limit that cannot be held is not ignored.
CUresult Policy::refuse_unknown(const Act &act, const Undo &undo) {
  Obtained obtained;
  const CUresult result = act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  undo(obtained.address);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Writes the block into the book and the log. Anything but success: it could not, and the block is the caller's to
// give back.
CUresult Policy::enter_block(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                             std::uint64_t duration_ns) {
  std::optional<Block> displaced;
  AddressBook::Inserted inserted{};
  try {
    if (&book == &book_) {
      pools_.settle(key, block.size);
    }
    inserted = book.insert(key, block, displaced);
  } catch (...) {
    journal_.count_failed_alloc();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (displaced) {
    end_block(request.api, {key, *displaced});
  }
  if (inserted == AddressBook::Inserted::context_gone) {
    discharge(block);
    return CUDA_SUCCESS;
  }
  events::Alloc event{key,
                      block.size,
                      request.requested,
                      block.device,
                      block.context->number,
                      request.api,
                      block.kind,
                      block.pool != nullptr ? events::Source::pool : events::Source::driver,
                      via_of(request),
                      duration_ns};
  event.charged = block.charged;
  journal_.record(event);
  pools_.tell_changes(block.device);
  if (!book.announce(key)) {
    end_block(block.context->ended_by.load(std::memory_order_acquire), {key, block});
    book.finish_end(key);
  }
  return CUDA_SUCCESS;
}

// Failing to do so gives it back: nothing is held that is not in the books.
CUresult Policy::enter(AddressBook &book, const Request &request, const Contexts::Current &where,
                       const Obtained &obtained, const Undo &undo, std::uint64_t duration_ns) {
  const Block block{obtained.bytes, where.device, where.context, request.kind, request.charged};
  const CUresult entered = enter_block(book, request, block, obtained.address, duration_ns);
  if (entered != CUDA_SUCCESS && undo(obtained.address) == CUDA_SUCCESS) {
    discharge(block);
  }
  return entered;
}

CUresult Policy::admit(const Request &request, const Contexts::Current &where, const Act &act, const Undo &undo,
                       Obtained &obtained) {
  ledger::Account &account = ledger_.account(where.device);
  ledger::ReserveOutcome reserved{};
  auto effort = ledger::Effort::kLookForDead;
  std::uint64_t returned = 0;
  const auto granted = [&] {
    returned = async_.returned(where.device);
    reserved = account.reserve(request.upper_bound, effort);
    return reserved == ledger::ReserveOutcome::granted;
  };
  const auto reason_of_refusal = [&] {
    return reserved == ledger::ReserveOutcome::over_limit ? events::Reason::limit : events::Reason::group;
  };
  Waiter waiter;
  while (!granted()) {
    if (!pools_.make_room(request.api, where.device, request.upper_bound)) {
      if (async_.reclaim(request.api, where.device, returned)) {
        continue;
      }
      if (pools_.is_changing(where.device)) {
        waiter.pause();
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
  CUresult result = act(obtained);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pools_.give_back(request.api, where.device)) {
    result = act(obtained);
  }
  while (result == CUDA_ERROR_OUT_OF_MEMORY && async_.reclaim(request.api, where.device, returned)) {
    returned = async_.returned(where.device);
    pools_.give_back(request.api, where.device);
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
      if (undo(obtained.address) == CUDA_SUCCESS) {
        account.release(request.upper_bound);
      }
      return deny(request, where, reason_of_refusal());
    }
  } else {
    account.commit(request.upper_bound, obtained.bytes);
  }
  return CUDA_SUCCESS;
}

CUresult Policy::obtain(AddressBook &book, const Request &request, const Contexts::Current &where, const Act &act,
                        const Undo &undo, CUdeviceptr *key) {
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  Obtained obtained;
  const CUresult result = request.charged ? admit(request, where, act, undo, obtained) : act(obtained);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  const CUresult entered = enter(book, request, where, obtained, undo, journal_.logging() ? now_ns() - start : 0);
  if (entered == CUDA_SUCCESS) {
    *key = obtained.address;
  }
  return entered;
}

CUresult Policy::allocate_direct(const Request &request, const Contexts::Current &where, const Act &act,
                                 CUdeviceptr *address) {
  return obtain(book_, request, where, act, undo_free, address);
}

CUresult Policy::obtain_here(AddressBook &book, const Request &request, const Act &act, const Undo &undo,
                             CUdeviceptr *key) {
  describe();
  if (request.charged && devices_.limit_unknown()) {
    return refuse_unknown(act, undo);
  }
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  return obtain(book, request, where, act, undo, key);
}

CUresult Policy::allocate_managed(Request request, const Act &act, CUdeviceptr *address) {
  request.kind = events::Kind::managed;
  request.charged = options_.limit_managed;
  return obtain_here(book_, request, act, undo_free, address);
}

CUresult Policy::allocate_host(const Request &request, const Act &act, const Undo &undo) {
  describe();
  CUdeviceptr address = 0;
  return obtain(book_, request, contexts_.current(), act, undo, &address);
}

void Policy::record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream) {
  events::Free event{
      address, block.size, block.device, block.context->number, api, reinterpret_cast<std::uintptr_t>(stream)};
  event.kind = block.kind;
  event.charged = block.charged;
  event.source = block.pool != nullptr ? events::Source::pool : events::Source::driver;
  journal_.record(event);
}

// What is charged for it alone.
void Policy::discharge(const Block &block) {
  if (block.charged && block.pool == nullptr) {
    ledger_.account(block.device).release(block.size);
  }
}

// The record first, then the bytes, then the address: whoever gets either again is logged behind it.
void Policy::end_block(const char *api, const AddressedBlock &block) {
  const auto &[address, held] = block;
  record_end(api, address, held, nullptr);
  discharge(held);
  if (held.pool != nullptr) {
    stream_pools_.block_ended(*held.pool);
  }
  pools_.tell_changes(held.device);
}

// The driver refused to free it.
void Policy::keep_block(AddressBook &book, const AddressedBlock &block) {
  journal_.count_failed_free();
  if (!book.cancel_end(block.first)) {
    end_block(block.second.context->ended_by.load(std::memory_order_acquire), block);
    book.finish_end(block.first);
  }
}

}  // namespace ration::policy

// A context that goes takes its blocks along: the half of Policy that follows contexts.
// Layer: policy.
#include <algorithm>

#include "policy/calls/policy.h"

namespace ration::policy {

using driver::real;

bool Policy::is_gone(CUdevice device) {
  unsigned flags = 0;
  int active = 1;
  return real.cuDevicePrimaryCtxGetState.present() &&
         real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0;
}

// The driver does not say what a context costs. Everything on the device that is not ours yet is an upper bound (it
// takes neighbours for ours): the strictest reading, until contexts are measured one by one.
void Policy::charge_own_memory(const ContextRef &context) {
  if (!options_.charge_context || !real.cuMemGetInfo_v2.present()) {
    return;
  }
  const CurrentFor current(context->handle);
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  if (!current || real.cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS) {
    return;
  }
  ledger::Account &account = ledger_.account(context->device);
  const std::uint64_t taken = total - std::min(free_bytes, total);
  const std::uint64_t charged = account.charged();
  std::uint64_t not_yet = 0;
  if (taken > charged &&
      context->own_bytes.compare_exchange_strong(not_yet, taken - charged, std::memory_order_relaxed)) {
    account.charge(taken - charged);
  }
}

void Policy::context_created(CUcontext handle, CUdevice device) noexcept try {
  describe();
  charge_own_memory(contexts_.note_created(handle, devices_.ordinal_of(device)));
} catch (...) {  // out of memory: the context is noted when it is first seen current
}

CUresult Policy::retain_primary(CUcontext *handle, CUdevice device, const std::function<CUresult()> &act) {
  describe();
  const int ordinal = devices_.ordinal_of(device);
  const Contexts::PrimaryGate turn(contexts_, ordinal);
  const CUresult result = act();
  if (result == CUDA_SUCCESS) {
    try {
      contexts_.add_primary_reference(ordinal, +1);
      charge_own_memory(contexts_.note_primary(*handle, ordinal));
    } catch (...) {  // as above
    }
  }
  return result;
}

void Policy::end_begun_blocks(AddressBook &book, const char *api, const ContextRef &context) {
  AddressBook::Batch batch;
  while (const std::size_t count = book.begun_of(context, batch)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto &[address, block] = batch[i];
      if (async_.owns(block.pool)) {  // the driver's pool does not know that it ends
        (void)async_.defer(block.device, {address, block.size, block.context});
      }
      if (&book == &arrays_) {
        end_mappings(api, address);
      }
      end_block(api, batch[i]);
      book.finish_end(batch[i].first);
    }
  }
}

CUresult Policy::end_known_context(const char *api, const ContextRef &context, const std::function<CUresult()> &act,
                                   const std::function<bool()> &is_gone) {
  // Begun before the call: once the driver has destroyed the context it may give its addresses to another thread. No
  // driver call of ours names the context meanwhile.
  context->begin_end();
  book_.begin_end_of(context);
  arrays_.begin_end_of(context);
  pools_.begin_end(context);
  const CUresult result = act();
  if (result != CUDA_SUCCESS || !is_gone()) {
    pools_.cancel_end(context);
    book_.cancel_end_of(context);
    arrays_.cancel_end_of(context);
    context->refuse_end();
    return result;
  }
  contexts_.forget(context, api);
  book_.begin_end_of(context);  // what other threads entered meanwhile
  arrays_.begin_end_of(context);
  pools_.begin_end(context);
  end_begun_blocks(book_, api, context);
  end_begun_blocks(arrays_, api, context);
  pools_.finish_end(api, context);
  async_.forget(context);
  async_.collect(context->device);
  imports_.finish_end(context);
  pending_.drop(context);
  ledger_.account(context->device).release(context->own_bytes.exchange(0, std::memory_order_relaxed));
  return result;
}

CUresult Policy::end_context(const char *api, CUcontext handle, const std::function<CUresult()> &act) {
  describe();
  const ContextRef context = contexts_.find(handle);
  return context != nullptr ? end_known_context(api, context, act, [] { return true; }) : act();
}

CUresult Policy::detach_context(const char *api, CUcontext handle, const std::function<CUresult()> &act) {
  if (contexts_.find(handle) == nullptr) {
    return act();
  }
  const bool last = contexts_.add_reference(handle, -1) <= 0;
  const CUresult result = last ? end_context(api, handle, act) : act();
  if (result != CUDA_SUCCESS) {
    contexts_.add_reference(handle, +1);
  }
  return result;
}

CUresult Policy::reset_primary(const char *api, CUdevice device, const std::function<CUresult()> &act) {
  describe();
  const Contexts::PrimaryGate turn(contexts_, devices_.ordinal_of(device));
  const ContextRef context = contexts_.primary_of(devices_.ordinal_of(device));
  return context != nullptr ? end_known_context(api, context, act, [] { return true; }) : act();
}

CUresult Policy::release_primary(const char *api, CUdevice device, const std::function<CUresult()> &act) {
  describe();
  const int ordinal = devices_.ordinal_of(device);
  const Contexts::PrimaryGate turn(contexts_, ordinal);
  const ContextRef context = contexts_.primary_of(ordinal);
  if (context == nullptr) {
    return act();
  }
  // The driver's word decides; our own count only where it gives none.
  const bool last = contexts_.add_primary_reference(ordinal, -1) <= 0;
  const bool driver_tells = real.cuDevicePrimaryCtxGetState.present();
  const CUresult result = end_known_context(api, context, act, [&] { return driver_tells ? is_gone(device) : last; });
  if (result != CUDA_SUCCESS) {
    contexts_.add_primary_reference(ordinal, +1);
  }
  return result;
}

}  // namespace ration::policy

#include "policy/calls/context_life.h"

#include "policy/calls/call_parts.h"

namespace ration::policy {

namespace {

using driver::real;

// Whether the driver says that the device's primary context is gone.
bool is_gone(CUdevice device) {
  unsigned flags = 0;
  int active = 1;
  return real.cuDevicePrimaryCtxGetState.present() &&
         real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0;
}

// Ends the blocks whose end was begun together with the context's.
void end_begun_blocks(const CallParts &parts, AddressBook &book, const char *api, const ContextRef &context) {
  AddressBook::Batch batch;
  while (const std::size_t count = book.begun_of(context, batch)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto &[address, block] = batch[i];
      if (parts.async_pools.owns(block.pool)) {  // the driver's pool does not know that it ends
        (void)parts.async_pools.defer(block.device, {address, block.size, block.context});
      }
      if (&book == &parts.books.arrays) {
        parts.mapped_memory.array_gone(api, address);
      }
      parts.books.end_block(api, batch[i]);
      book.finish_end(batch[i].first);
    }
  }
}

// Blocks that graph launches left on a device end with its last context. Only the driver knows which context that is:
// it then says that graphs hold nothing of the device.
void end_graph_blocks(const CallParts &parts, const char *api, int device) {
  const StreamPools::PoolRef pool = parts.stream_pools.known_of_graphs(device);
  if (pool == nullptr) {
    return;
  }
  if (pool->graphs->live_bytes.load() != 0) {
    const ContextRef &owner = pool->graphs->owner;
    parts.books.blocks.begin_end_of(owner);  // before the question: blocks that are left later are another context's
    if (pool->used_bytes() == 0) {
      end_begun_blocks(parts, parts.books.blocks, api, owner);
    } else {
      parts.books.blocks.cancel_end_of(owner);
    }
  }
  parts.stream_pools.charge_missing(api, *pool);
}

// REQUIRES: the driver has destroyed it, and parts.contexts knows.
void finish_end(const CallParts &parts, const char *api, const ContextRef &context) {
  parts.books.blocks.begin_end_of(context);  // what other threads entered meanwhile
  parts.books.arrays.begin_end_of(context);
  parts.pools.begin_end(context);
  end_begun_blocks(parts, parts.books.blocks, api, context);
  end_begun_blocks(parts, parts.books.arrays, api, context);
  end_graph_blocks(parts, api, context->device);
  parts.pools.finish_end(api, context);
  parts.async_pools.forget(context);
  parts.async_pools.collect(context->device);
  parts.imports.finish_end(context);
  parts.pending.drop(context);
  parts.overhead.context_ended(*context);
}

// Finishes the ends of contexts that the driver destroyed by calls that we did not see.
void finish_unseen_ends(const CallParts &parts) noexcept try {
  if (!parts.contexts.has_ended_unseen()) {
    return;
  }
  for (const ContextRef &context : parts.contexts.take_ended_unseen()) {
    context->begin_end();  // returns once no driver call of ours names it
    finish_end(parts, "unknown", context);
  }
} catch (...) {  // out of memory of the host
}

// `is_gone` is called after a successful `call`.
CUresult end_known(const CallParts &parts, const char *api, const ContextRef &context, DriverCall call,
                   FunctionRef<bool()> is_gone) {
  finish_unseen_ends(parts);
  // The end begins before the call: once the driver has destroyed the context, it may give its addresses to another
  // thread. No driver call of ours names the context meanwhile.
  context->begin_end();
  parts.books.blocks.begin_end_of(context);
  parts.books.arrays.begin_end_of(context);
  parts.pools.begin_end(context);
  const CUresult result = call();
  if (result != CUDA_SUCCESS || !is_gone()) {
    parts.pools.cancel_end(context);
    parts.books.blocks.cancel_end_of(context);
    parts.books.arrays.cancel_end_of(context);
    context->refuse_end();
    return result;
  }
  parts.contexts.forget(context, api);
  finish_end(parts, api, context);
  return result;
}

}  // namespace

CUresult ContextLife::create(const char *api, CUcontext *handle, CUdevice device, DriverCall call) {
  const auto note = [&]() noexcept -> ContextRef {
    try {
      ContextRef made = parts_.contexts.note_created(*handle, parts_.devices.ordinal_of(device));
      finish_unseen_ends(parts_);
      return made;
    } catch (...) {  // out of memory of the host: the context is noted when it is first seen current
      return nullptr;
    }
  };
  return parts_.overhead.make_context(api, parts_.devices.ordinal_of(device), Room::Patience::briefly, call, note);
}

void ContextLife::attached(CUcontext handle) {
  parts_.contexts.add_reference(handle, +1);
}

CUresult ContextLife::retain_primary(CUcontext *handle, CUdevice device, DriverCall call) {
  const int ordinal = parts_.devices.ordinal_of(device);
  const Contexts::PrimaryGate turn(parts_.contexts, ordinal);
  finish_unseen_ends(parts_);
  const auto note = [&]() noexcept -> ContextRef {
    try {
      parts_.contexts.add_primary_reference(ordinal, +1);
      return parts_.contexts.note_primary(*handle, ordinal);
    } catch (...) {  // as above
      return nullptr;
    }
  };
  if (parts_.contexts.primary_of(ordinal) == nullptr) {
    return parts_.overhead.make_context("cuDevicePrimaryCtxRetain", ordinal, Room::Patience::none, call, note);
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    (void)note();
  }
  return result;
}

CUresult ContextLife::destroy(const char *api, CUcontext handle, DriverCall call) {
  const ContextRef context = parts_.contexts.find(handle);
  return context != nullptr ? end_known(parts_, api, context, call, [] { return true; }) : call();
}

CUresult ContextLife::detach(const char *api, CUcontext handle, DriverCall call) {
  if (parts_.contexts.find(handle) == nullptr) {
    return call();
  }
  const bool last = parts_.contexts.add_reference(handle, -1) <= 0;
  const CUresult result = last ? destroy(api, handle, call) : call();
  if (result != CUDA_SUCCESS) {
    parts_.contexts.add_reference(handle, +1);
  }
  return result;
}

CUresult ContextLife::reset_primary(const char *api, CUdevice device, DriverCall call) {
  const Contexts::PrimaryGate turn(parts_.contexts, parts_.devices.ordinal_of(device));
  const ContextRef context = parts_.contexts.primary_of(parts_.devices.ordinal_of(device));
  return context != nullptr ? end_known(parts_, api, context, call, [] { return true; }) : call();
}

CUresult ContextLife::release_primary(const char *api, CUdevice device, DriverCall call) {
  const int ordinal = parts_.devices.ordinal_of(device);
  const Contexts::PrimaryGate turn(parts_.contexts, ordinal);
  const ContextRef context = parts_.contexts.primary_of(ordinal);
  if (context == nullptr) {
    return call();
  }
  // The driver's answer decides; our own count does so only if the driver gives none.
  const bool last = parts_.contexts.add_primary_reference(ordinal, -1) <= 0;
  const bool driver_tells = real.cuDevicePrimaryCtxGetState.present();
  const CUresult result = end_known(parts_, api, context, call, [&] { return driver_tells ? is_gone(device) : last; });
  if (result != CUDA_SUCCESS) {
    parts_.contexts.add_primary_reference(ordinal, +1);
  }
  return result;
}

bool ContextLife::device_of(CUgreenCtx green, CUdevice &device) {
  Guard guard(greens_mutex_);
  const auto found = greens_.find(green);
  if (found == greens_.end()) {
    return false;
  }
  device = found->second;
  return true;
}

// The first green context of a device takes memory, which ends with the primary context.
CUresult ContextLife::create_green(CUgreenCtx *green, CUdevice device, DriverCall call) {
  return parts_.overhead.make_context("cuGreenCtxCreate", parts_.devices.ordinal_of(device), Room::Patience::briefly,
                                      call, [&] { return green_created(*green, device); });
}

ContextRef ContextLife::green_created(CUgreenCtx green, CUdevice device) noexcept try {
  {
    Guard guard(greens_mutex_);
    greens_[green] = device;
  }
  parts_.contexts.add_primary_reference(parts_.devices.ordinal_of(device), +1);
  // A green context holds its device's primary context, which the program may never have named.
  const Contexts::PrimaryGate turn(parts_.contexts, parts_.devices.ordinal_of(device));
  CUcontext primary = nullptr;
  if (real.cuDevicePrimaryCtxRetain.present() && real.cuDevicePrimaryCtxRelease_v2.present() &&
      real.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS) {
    ContextRef noted = parts_.contexts.note_primary(primary, parts_.devices.ordinal_of(device));
    real.cuDevicePrimaryCtxRelease_v2(device);
    return noted;
  }
  return nullptr;
} catch (...) {  // out of memory of the host: its allocations are refused as those of an unknown context
  return nullptr;
}

void ContextLife::green_converted(CUcontext context, CUgreenCtx green) noexcept try {
  CUdevice device = 0;
  bool known = device_of(green, device);
  if (!known && real.cuCtxGetDevice.present()) {
    const CurrentFor current(context);
    known = current && real.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  }
  if (known) {
    parts_.contexts.note_green(context, green, parts_.devices.ordinal_of(device));
  }
} catch (...) {  // as above
}

CUresult ContextLife::destroy_green(const char *api, CUgreenCtx green, DriverCall call) {
  CUdevice device = 0;
  const bool known = device_of(green, device);
  const Contexts::PrimaryGate turn(parts_.contexts, parts_.devices.ordinal_of(device));
  // The green context releases the primary context. If it was the last holder, the primary context ends, and its memory
  // with it.
  const CUresult result = known ? release_primary(api, device, call) : call();
  if (result == CUDA_SUCCESS) {
    parts_.contexts.forget_green(green);
    Guard guard(greens_mutex_);
    greens_.erase(green);
  }
  return result;
}

CUresult ContextLife::change_peer(CUcontext peer, bool enabled, DriverCall call) {
  if (enabled) {
    const Contexts::Current from = parts_.contexts.current();
    if (const ContextRef to = parts_.contexts.find(peer); to != nullptr) {
      parts_.contexts.note_peer(from.device, to->device);
    } else {
      parts_.contexts.note_anywhere();
    }
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    const Contexts::Current where = parts_.contexts.current();
    if (const ContextRef other = parts_.contexts.find(peer); where.error == CUDA_SUCCESS && other != nullptr) {
      if (parts_.options.async) {
        parts_.async_pools.peer_changed(where.device, other->device, enabled);
      }
      if (enabled) {
        parts_.pools.granules.peer_may_access(other->device, where.device);
        parts_.imports.peer_may_access(other->device, where.device);
      }
    }
  }
  return result;
}

}  // namespace ration::policy

#include "policy/block_pool/slab_backing.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/wait.h"
#include "policy/block_pool/slab_releaser.h"
#include "pool/merged_bytes.h"

namespace ration::policy {
namespace {

using driver::real;

// Records what the driver destroyed with a context.
class TeardownUpstream final : public pool::NoUpstream {
 public:
  TeardownUpstream(SlabBacking &backing, const char *api, const Context &context)
      : backing_(backing), api_(api), context_(context) {}
  void shrink(const pool::Slab &slab) noexcept override { backing_.forget(api_, context_, slab); }

 private:
  SlabBacking &backing_;
  const char *const api_;
  const Context &context_;
};

}  // namespace

Taken SlabBacking::take(const PoolCall &call, const Wanted &wanted) {
  ledger::Account &account = call.device.account;
  ledger::Transit transit(account.transits());
  CUdeviceptr address = 0;
  const std::uint64_t start = parts_.journal.logging() ? now_ns() : 0;
  Taken taken{TakeOutcome::failed};
  taken.pieces.reserve(1);
  taken.outcome = call.device.obtain(wanted.bytes, wanted.effort, transit, taken.error,
                                     [&] { return real.cuMemAlloc_v2(&address, wanted.bytes); });
  if (taken.outcome != TakeOutcome::taken) {
    return taken;
  }
  try {
    if (!slabs_.insert(address, wanted.bytes, call.where.context)) {
      account.release(wanted.bytes);  // the slab went with its context
      return {TakeOutcome::failed, {}, CUDA_ERROR_CONTEXT_IS_DESTROYED};
    }
  } catch (...) {
    if (real.cuMemFree_v2(address) == CUDA_SUCCESS) {
      account.release(wanted.bytes);
    }
    throw;
  }
  taken.pieces.push_back({address, wanted.bytes, pools_.next_number()});
  parts_.journal.record(events::SlabAlloc{address, wanted.bytes, call.where.device, call.where.context->number,
                                          taken.pieces.front().id, "cuMemAlloc_v2", wanted.why,
                                          start != 0 ? now_ns() - start : 0});
  call.device.note_taken(wanted.bytes);
  account.request_publication();
  return taken;
}

// Log, then release, then unmap, so that reuse is always logged later.
void SlabBacking::forget(const char *api, const Context &context, const pool::Slab &slab) noexcept {
  parts_.journal.record(events::SlabFree{slab.address, slab.bytes, context.device, context.number, slab.id, api});
  parts_.ledger.account(context.device).release(slab.bytes);
  slabs_.erase(slab.address, context);
  pools_.known(context.device)->note_gone(slab.bytes);
  publication_.publish(context.device);
}

bool SlabBacking::give_back(const char *api, const ContextRef &context, const pool::Slab &slab) noexcept {
  for (Waiter waiter;;) {
    if (const Pin pin(*context); pin) {
      slabs_.begin_end(slab.address);  // a thread that ends the context waits for the pin first
      const ledger::Change change(parts_.ledger.account(context->device).changes());
      const RelaxedCapture relaxed;
      const CurrentFor current(context->handle);
      if (!current || real.cuMemFree_v2(slab.address) != CUDA_SUCCESS) {
        slabs_.cancel_end(slab.address);
        return false;
      }
      forget(api, *context, slab);
      return true;
    }
    if (const char *ended_by = context->ended_by.load(std::memory_order_acquire)) {
      forget(ended_by, *context, slab);  // the slab went with its context, whose pool no longer held it
      return true;
    }
    waiter.pause();  // another thread's destroy decides whether the context goes
  }
}

Returned SlabBacking::give_back_free(const Room::Need &need, const ContextRef &context, bool idle) noexcept {
  if (!idle) {
    return {};
  }
  ContextPool &pool = *existing_pool(*context);
  SlabReleaser releaser(*this, need.api, context);
  pool.blocks.give_back(releaser, &pool == need.asking ? need.block_bytes : UINT64_MAX);
  return {releaser.slabs, 0, releaser.bytes};
}

std::uint64_t SlabBacking::returnable(ContextPool &pool, bool) {
  return pool::free_slabs(pool.blocks, 1).bytes;
}

void SlabBacking::preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t least) {
  while (whole_units(bytes) >= least) {
    const Taken taken = take(call, {whole_units(bytes), ledger::Effort::kImmediate, "preallocate"});
    switch (taken.outcome) {
      case TakeOutcome::taken:
        if (call.pool.blocks.add_slab(taken.pieces.front()) != pool::AddSlabOutcome::kAdded) {
          give_back(call.request.api, call.where.context, taken.pieces.front());
        }
        return;
      case TakeOutcome::failed:
        return;
      case TakeOutcome::over_limit:
      case TakeOutcome::device_full:
        bytes = nine_tenths(bytes);
        break;
      case TakeOutcome::over_group_limit:  // other members took it first
        bytes = std::min(nine_tenths(bytes), call.device.account.available());
        break;
    }
  }
}

CUresult SlabBacking::locate(const ContextRef &owner, const pool::Block &block, ledger::ExportedBlock &in,
                             std::string &) {
  const std::optional<pool::Slab> slab = existing_pool(*owner)->blocks.slab_of(block.address);
  if (!slab || slab->id != block.slab) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUipcMemHandle of_slab{};
  const CUresult result = real.cuIpcGetMemHandle(&of_slab, slab->address);
  std::memcpy(in.handle, &of_slab, sizeof(in.handle));
  in.offset = block.address - slab->address;
  in.slab_bytes = slab->bytes;
  return result;
}

void SlabBacking::end(const char *api, const ContextRef &context, ContextPool &pool) noexcept {
  TeardownUpstream teardown(*this, api, *context);
  pool.blocks.give_back(teardown);
}

}  // namespace ration::policy

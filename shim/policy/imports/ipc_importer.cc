#include "policy/imports/ipc_importer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/take_out.h"
#include "base/wait.h"
#include "events/diagnostics.h"

namespace ration::policy {
namespace {

using driver::real;

bool is_same(const ledger::ExportToken &one, const ledger::ExportToken &other) {
  return std::memcmp(&one, &other, sizeof(one)) == 0;
}

bool is_within(CUdeviceptr address, CUdeviceptr base, std::uint64_t bytes) {
  return address >= base && address - base < bytes;
}

bool allow(const ImportedGranules &granules, int peer) noexcept {
  CUdevice device = 0;
  return real.cuDeviceGet.present() && real.cuDeviceGet(&device, peer) == CUDA_SUCCESS && granules.allow(device);
}

}  // namespace

void IpcImporter::Closed::add(Items &one) noexcept {
  Guard guard(mutex_);
  note_added({one.size(), 0});
  open_.splice(open_.end(), one);
}

// Leases and mappings end with `cleaned`, outside the lock, because each costs a system call or several driver calls.
bool IpcImporter::Closed::reclaim(Items &items, Cleaned &cleaned) {
  cleaned.blocks += items.size();
  note_reclaimed({items.size(), 0});
  cleaned.items.splice(cleaned.items.end(), items);
  return true;
}

void IpcImporter::Closed::wait_briefly() noexcept {
  const std::uint64_t start = now_ns();
  for (Backoff backoff; blocks() != 0 && FenceTracker::can_tell();) {
    const Cleaned cleaned = fences_.by_events() ? collect(Sealing::worthwhile) : wait(reclaimed());
    if (cleaned.error != CUDA_SUCCESS || cleaned.capturing || now_ns() - start > kBrieflyNs) {
      return;
    }
    if (blocks() != 0) {
      backoff.sleep();
    }
  }
}

// Opening a block again returns the same address and expects one more close, as for the driver's own handles.
bool IpcImporter::open_again(const ledger::ExportToken &token, const ContextRef &context, CUdeviceptr *address) {
  Guard guard(mutex_);
  for (Opened &opened : opened_) {
    if (opened.in->context == context && is_same(opened.token, token)) {
      ++opened.count;
      *address = opened.range.base;
      return true;
    }
  }
  return false;
}

// Finds or makes the mapping for a block: its slab, which is already mapped in this context or is opened now, or its
// granules.
CUresult IpcImporter::map(const ledger::ExportToken &token, const ledger::ExportedBlock &block,
                          const ContextRef &context, const Open &act, std::shared_ptr<Mapping> &mapping) {
  const bool in_granules = block.kind == ledger::ExportKind::granules;
  if (!in_granules) {
    Guard guard(mutex_);
    for (const Opened &opened : opened_) {
      if (opened.in->context == context && opened.in->exporter == token.exporter && opened.in->granules == nullptr &&
          std::memcmp(opened.in->handle.data(), block.handle, sizeof(block.handle)) == 0) {
        mapping = opened.in;
        return CUDA_SUCCESS;
      }
    }
  }
  auto made = std::make_shared<Mapping>();
  made->context = context;
  made->exporter = token.exporter;
  made->bytes = block.slab_bytes;
  CUresult result = CUDA_SUCCESS;
  if (in_granules) {
    std::string problem;
    result = ImportedGranules::map(state_folder_, token, block, made->granules, problem);
    made->base = made->granules != nullptr ? made->granules->base() : 0;
    say_once(problem);
  } else {
    std::copy(std::begin(block.handle), std::end(block.handle), made->handle.begin());
    CUipcMemHandle handle{};
    static_assert(sizeof(handle) == sizeof(block.handle));
    std::memcpy(&handle, block.handle, sizeof(handle));
    result = act(handle, &made->base);
  }
  if (result == CUDA_SUCCESS) {
    mapping = std::move(made);
  }
  return result;
}

void IpcImporter::say_once(const std::string &problem) {
  if (!problem.empty() && !said_.exchange(true)) {
    events::say("shared memory cannot be opened: " + problem);
  }
}

CUresult IpcImporter::Mapping::unmap() const {
  if (!real.cuIpcCloseMemHandle.present()) {
    return CUDA_SUCCESS;
  }
  if (context->handle == nullptr) {  // this driver does not report the current context
    return real.cuIpcCloseMemHandle(base);
  }
  const Pin pin(*context);
  if (!pin) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  const CurrentFor current(context->handle);
  if (!current) {
    return current.error();
  }
  return real.cuIpcCloseMemHandle(base);
}

CUresult IpcImporter::open(const ledger::ExportToken &token, const ContextRef &context, const Open &act,
                           CUdeviceptr *address) {
  const ReentrantGate gate(gate_);
  in_use_.store(true);
  poll();
  std::list<Opened> one(1);  // made now: after the driver's call no host memory is needed
  Opened &opened = one.front();
  std::string problem;
  opened.lease = ledger::ExportLease::take(state_folder_, token, problem);
  if (opened.lease == nullptr) {
    say_once(problem);
    return !problem.empty() && ledger::lacks_descriptors() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  }
  if (open_again(token, context, address)) {
    return CUDA_SUCCESS;
  }
  const ledger::ExportedBlock &block = opened.lease->block();
  if (const CUresult result = map(token, block, context, act, opened.in); result != CUDA_SUCCESS) {
    return result;
  }
  opened.token = token;
  opened.range = {opened.in->base + block.offset, block.bytes};
  const CUdeviceptr found = opened.range.base;
  const std::shared_ptr<Mapping> in = opened.in;
  {
    Guard guard(mutex_);
    ++opened.in->users;
    opened_.splice(opened_.end(), one);
  }
  if (context->ended_by.load(std::memory_order_acquire) != nullptr) {
    finish_end(context);  // again, because the first call may have come before the entry
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  allow_peers(*in);
  *address = found;
  return CUDA_SUCCESS;
}

// The exporter may reuse the block once the device has finished all work of this process that may use it.
CUresult IpcImporter::close(CUdeviceptr address, const ContextRef &context, bool &handled) {
  handled = covers(address);
  if (!handled) {
    return CUDA_SUCCESS;
  }
  const ReentrantGate gate(gate_);
  DeferredQueue::Items closed;  // made now: after the driver's call no host memory is needed
  closed.push_back(std::make_unique<Opened>());
  std::list<Opened>::iterator last;
  bool unmaps = false;
  {
    Guard guard(mutex_);
    last = opened_.end();
    for (auto each = opened_.begin(); each != opened_.end(); ++each) {
      const bool better = last == opened_.end() || each->in->context == context;
      last = each->range.base == address && better ? each : last;
    }
    if (last == opened_.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (last->count > 1) {
      --last->count;
      return CUDA_SUCCESS;
    }
    unmaps = last->in->users == 1 && last->in->granules == nullptr;
  }
  if (unmaps) {
    if (const CUresult result = last->in->unmap(); result != CUDA_SUCCESS) {
      return result;
    }
  }
  {
    Guard guard(mutex_);
    --last->in->users;
    static_cast<Opened &>(*closed.front()) = std::move(*last);
    opened_.erase(last);
  }
  closed_.add(closed);
  closed_.wait_briefly();
  return CUDA_SUCCESS;
}

bool IpcImporter::covers(CUdeviceptr address) {
  if (!in_use()) {
    return false;
  }
  Guard guard(mutex_);
  return std::any_of(opened_.begin(), opened_.end(),
                     [&](const Opened &opened) { return is_within(address, opened.in->base, opened.in->bytes); });
}

// What `look` returns for the open block at an address; nullopt: there is none.
template <class Look>
auto IpcImporter::in_block(CUdeviceptr address, const Look &look)
    -> std::optional<std::invoke_result_t<Look, Opened &>> {
  if (!in_use()) {
    return std::nullopt;
  }
  Guard guard(mutex_);
  for (Opened &opened : opened_) {
    if (is_within(address, opened.range.base, opened.range.bytes)) {
      return look(opened);
    }
  }
  return std::nullopt;
}

std::optional<IpcImporter::Range> IpcImporter::block_at(CUdeviceptr address) {
  return in_block(address, [](const Opened &opened) { return opened.range; });
}

std::uint64_t IpcImporter::name(CUdeviceptr address, std::uint64_t fresh) {
  const auto look = [fresh](Opened &opened) { return opened.name = opened.name != 0 ? opened.name : fresh; };
  return in_block(address, look).value_or(0);
}

bool IpcImporter::mark(CUdeviceptr address, bool marked) {
  return in_block(address, [marked](Opened &opened) { return opened.marked = marked; }).has_value();
}

std::optional<bool> IpcImporter::is_marked(CUdeviceptr address) {
  return in_block(address, [](const Opened &opened) { return opened.marked; });
}

ContextRef IpcImporter::opener_in_granules(CUdeviceptr address) {
  const auto look = [](const Opened &opened) { return opened.in->granules != nullptr ? opened.in->context : nullptr; };
  return in_block(address, look).value_or(nullptr);
}

void IpcImporter::allow_peers(const Mapping &mapping) noexcept {
  const std::uint64_t peers = mapping.granules == nullptr ? 0 : peers_[mapping.context->device].load();
  for (int peer = 0; peers >> peer != 0 && peer < kPeers; ++peer) {
    if ((peers >> peer & 1) != 0) {
      (void)allow(*mapping.granules, peer);
    }
  }
}

// A block that is opened meanwhile either sees the new peer or is in the list.
void IpcImporter::peer_may_access(int device, int peer) noexcept try {
  if (peer < 0 || peer >= kPeers || device < 0 || device >= ledger::kMaxDevices || peer == device ||
      (peers_[device].fetch_or(std::uint64_t{1} << peer) >> peer & 1) != 0 || !in_use()) {
    return;
  }
  std::vector<std::shared_ptr<Mapping>> mappings;
  {
    Guard guard(mutex_);
    for (const Opened &opened : opened_) {
      if (opened.in->granules != nullptr && opened.in->context->device == device) {
        mappings.push_back(opened.in);
      }
    }
  }
  for (const std::shared_ptr<Mapping> &mapping : mappings) {
    (void)allow(*mapping->granules, peer);
  }
} catch (...) {  // no host memory
}

// Needs no wait, because the device has finished all work of a context that has ended.
void IpcImporter::finish_end(const ContextRef &context) noexcept {
  if (!in_use()) {
    return;
  }
  const ReentrantGate gate(gate_);
  std::list<Opened> gone;  // destroyed without the lock
  Guard guard(mutex_);
  gone = take_out(opened_, [&](const Opened &opened) { return opened.in->context == context; });
}

}  // namespace ration::policy

// Admit, route, record: what happens to a call that takes, returns or reports device memory.
// Layer: policy (may include pool, ledger, events, driver). Called from: hooks through the runtime, on any thread.
// Threads: every call is safe; no lock is held across a driver call. Owns: the books of this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/functions.h"
#include "events/diagnostics.h"
#include "events/journal.h"
#include "ledger/ledger.h"
#include "policy/block_pool/block_pools.h"
#include "policy/calls/address_book.h"
#include "policy/contexts/contexts.h"
#include "policy/devices/devices.h"
#include "policy/devices/memory_figures.h"
#include "policy/devices/request.h"
#include "policy/driver_pools/async_pools.h"
#include "policy/imports/ipc_importer.h"
#include "policy/physical/array_costs.h"
#include "policy/physical/pending_frees.h"
#include "policy/physical/physical_memory.h"

namespace ration::policy {

// From here on a block shared as the driver's own can be had by any process, with Ration or without.
inline constexpr std::uint64_t kLargeBytes = 2U << 20U;

struct Options {
  bool show_limit = true;         // queries tell the limit as the size of the device
  bool charge_context = false;    // a context's own memory counts against the limit
  bool pool = false;              // blocks come from pools (mode pool), where the driver allows it
  bool synchronous_free = false;  // a free waits for the work before it
  bool limit_managed = true;      // managed memory counts against the limit, in its full size
  bool async = false;             // blocks come from pools of the driver's (mode async), where a device has them
  bool deterministic = false;     // mode async: how those pools use memory again
  bool large_direct = false;      // blocks of kLargeBytes and more are the driver's own (ipc=direct)
};

// What one driver call obtained: an address, or a handle's value.
struct Obtained {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};

// One real driver call that obtains something; how to give that back again.
using Act = std::function<CUresult(Obtained &)>;
using Undo = std::function<CUresult(CUdeviceptr address)>;

class Policy {
 public:
  Policy(const Options &options, LimitSource &limits, events::JournalOptions journal, std::string &problem);

  // Reserves, runs `act` (one real driver call), commits. Denied: CUDA_ERROR_OUT_OF_MEMORY and `act` did not run, or
  // what it took was given back. The driver's own error goes back verbatim. Only success writes `*address`.
  CUresult allocate(const Request &request, const Act &act, CUdeviceptr *address);
  // The same for what has a handle instead of an address (arrays and mipmapped arrays), and costs what its shape does;
  // and for memory of the host, which is written down and not limited. `undo` gives back what `act` obtained.
  CUresult create_array(Request request, const ArrayShape &shape, const Act &act, const Undo &undo,
                        CUdeviceptr *handle);
  CUresult allocate_host(const Request &request, const Act &act, const Undo &undo);
  // Physical memory apart from its addresses: charged to the device that it lies on until the last handle was released
  // and the last mapping undone. Each runs `act`, the driver's call.
  CUresult create_physical(Request request, const CUmemLocation &location, const Act &act, const Undo &undo,
                           CUmemGenericAllocationHandle *handle);
  CUresult release_physical(const char *api, CUmemGenericAllocationHandle handle, const std::function<CUresult()> &act);
  CUresult retain_physical(const char *api, CUdeviceptr address, CUmemGenericAllocationHandle *handle,
                           const std::function<CUresult()> &act);
  CUresult map_physical(const char *api, CUdeviceptr address, std::uint64_t bytes, CUmemGenericAllocationHandle handle,
                        const std::function<CUresult()> &act);
  CUresult unmap_physical(const char *api, CUdeviceptr address, std::uint64_t bytes,
                          const std::function<CUresult()> &act);
  // The same for regions of sparse arrays, mapped and unmapped in the order of `stream`.
  CUresult map_arrays(const CUarrayMapInfo *entries, std::size_t count, CUstream stream,
                      const std::function<CUresult()> &act);
  // In stream order, from one of the driver's pools (nullptr: the one that is current on the stream's device).
  CUresult allocate_in_stream(Request request, CUmemoryPool pool, CUstream stream, const Act &act,
                              CUdeviceptr *address);
  void stream_pool_created(CUmemoryPool pool, const CUmemLocation &location) noexcept;
  CUresult destroy_stream_pool(CUmemoryPool pool, const std::function<CUresult()> &act);
  CUresult trim_stream_pool(const char *api, CUmemoryPool pool, const std::function<CUresult()> &act);
  // Managed memory counts in its full size, or is only written down.
  CUresult allocate_managed(Request request, const Act &act, CUdeviceptr *address);

  // Frees with one real driver call. A block that is none of ours is the driver's to answer.
  CUresult free(const char *api, CUdeviceptr address, const std::function<CUresult()> &act);
  CUresult free_host(const char *api, const void *address, const std::function<CUresult()> &act);
  CUresult destroy_array(const char *api, std::uint64_t handle, const std::function<CUresult()> &act);
  // The same in stream order: the block ends now, its bytes stay charged until `stream` got here.
  CUresult free_in_stream(const char *api, CUdeviceptr address, CUstream stream, const std::function<CUresult()> &act);

  // Virtualises what the driver answered: total and free bytes as this process can really have them. NULL-safe.
  void present_memory(std::size_t *free_bytes, std::size_t *total_bytes);
  void present_total(std::size_t *total_bytes, CUdevice device);
  // The same for what NVML says of the device called `uuid`. Empty: it has no name, and is `alone` in the machine or
  // not to be told from others. No context is needed for it, and none is made.
  Presented present_device(std::string_view uuid, bool alone, DeviceMemory &memory);

  // What the driver would say of one of its own allocations, for a block of a pool. `handled`: the address was ours to
  // answer for; else ask the driver.
  CUresult address_range(CUdeviceptr address, CUdeviceptr *base, std::size_t *bytes, bool &handled);
  // Whether an address lies in a pool's slab without being part of a live block: to the program, no memory at all.
  bool is_dead(CUdeviceptr address);
  // What the driver said of a slab in `data`, as it is of the block around `address`; nothing where that is none of
  // ours.
  void correct_attribute(CUpointer_attribute attribute, CUdeviceptr address, void *data);
  // The context that a block of mode async was obtained in, of which the driver says that it is no context's. False:
  // it is none of these, and nothing was written.
  bool tell_context(CUdeviceptr address, void *data);
  // Runs `act`, which sets an attribute, or notes down what the driver cannot keep for one block.
  CUresult set_attribute(CUpointer_attribute attribute, CUdeviceptr address, const void *value,
                         const std::function<CUresult()> &act);
  // The driver's handle of a pool's block would open the whole slab to another process: it gets one of ours.
  CUresult share(const char *api, CUipcMemHandle *handle, CUdeviceptr address, const std::function<CUresult()> &act);
  // Runs `act`, which opens a handle of the driver's, where one of ours leads there, or with what is none of ours.
  CUresult open_shared(const CUipcMemHandle &handle, const IpcImporter::Open &act, CUdeviceptr *address);
  CUresult close_shared(CUdeviceptr address, const std::function<CUresult()> &act);
  // At the end of the process: what it shared can be opened no more.
  void stop_sharing() noexcept { pools_.exports().leave(); }

  // Streams that begin and end captures or go, and a context that the program itself synchronises (nullptr: the current
  // one). Each runs `act`, the driver's call.
  CUresult begin_capture(CUstream stream, const std::function<CUresult()> &act);
  CUresult end_capture(CUstream stream, const std::function<CUresult()> &act);
  CUresult destroy_stream(CUstream stream, const std::function<CUresult()> &act);
  CUresult synchronise(CUcontext context, const std::function<CUresult()> &act);

  // Runs `act`, which gives the current context access to `peer`'s memory, or takes it away.
  CUresult change_peer(CUcontext peer, bool enabled, const std::function<CUresult()> &act);

  // A context came to be, by creation or as a device's primary one.
  void context_created(CUcontext handle, CUdevice device) noexcept;
  void context_attached(CUcontext handle) { contexts_.add_reference(handle, +1); }
  // Runs `act`, which retains `device`'s primary context and writes its handle.
  CUresult retain_primary(CUcontext *handle, CUdevice device, const std::function<CUresult()> &act);
  // Runs `act`, which destroys `handle`; on success its blocks have ended with it.
  CUresult end_context(const char *api, CUcontext handle, const std::function<CUresult()> &act);
  // Runs `act`, which drops one reference of a context; the last one destroys it.
  CUresult detach_context(const char *api, CUcontext handle, const std::function<CUresult()> &act);
  void green_created(CUgreenCtx green, CUdevice device) noexcept;
  void green_converted(CUcontext context, CUgreenCtx green) noexcept;
  CUresult destroy_green(const char *api, CUgreenCtx green, const std::function<CUresult()> &act);
  CUresult reset_primary(const char *api, CUdevice device, const std::function<CUresult()> &act);
  CUresult release_primary(const char *api, CUdevice device, const std::function<CUresult()> &act);

  events::Journal &journal() { return journal_; }
  const ledger::Ledger &ledger() const { return ledger_; }
  // Once, before anything else: joins the groups that the settings name.
  void join_groups() { devices_.join_groups(); }
  // Tells the journal about the devices as soon as the driver can be asked.
  void describe();
  // How the program's call came to us, for the log; set by the hooks, which know who called.
  void set_via(events::Via (*via_of)(const void *caller)) { via_of_ = via_of; }

 private:
  // For a block of a pool or of another process's: what it is called; whether it is to be synchronous.
  std::uint64_t name_of(CUdeviceptr address);
  std::optional<bool> is_marked(CUdeviceptr address);
  std::uint64_t free_on(const char *api, const Device &device, std::uint64_t really_free);
  bool shows_limit(const Device &device) const {
    return options_.show_limit && device.limit_asked.load(std::memory_order_relaxed);
  }
  CUresult deny(const Request &request, const Contexts::Current &where, events::Reason reason);
  static CUresult refuse_unknown(const Act &act, const Undo &undo);
  static CUresult undo_free(CUdeviceptr address);
  void record_oom(const char *api, std::uint64_t requested, int device, events::Reason reason, const Context *of,
                  bool sharing = false);
  static void explain_group(const ledger::Account &account, events::GroupState &group);
  // Reserves, acts, holds what was obtained to the limit.
  CUresult admit(const Request &request, const Contexts::Current &where, const Act &act, const Undo &undo,
                 Obtained &obtained);
  // The same, and enters it in a book.
  CUresult obtain(AddressBook &book, const Request &request, const Contexts::Current &where, const Act &act,
                  const Undo &undo, CUdeviceptr *key);
  // The same on what is current.
  CUresult obtain_here(AddressBook &book, const Request &request, const Act &act, const Undo &undo, CUdeviceptr *key);
  CUresult allocate_direct(const Request &request, const Contexts::Current &where, const Act &act,
                           CUdeviceptr *address);
  events::Via via_of(const Request &request) const;
  CUresult enter(AddressBook &book, const Request &request, const Contexts::Current &where, const Obtained &obtained,
                 const Undo &undo, std::uint64_t duration_ns);
  CUresult enter_block(AddressBook &book, const Request &request, const Block &block, CUdeviceptr key,
                       std::uint64_t duration_ns);
  StreamPools::PoolRef stream_pool(CUmemoryPool handle, int device);
  CUresult obtain_from(const StreamPools::PoolRef &pool, Request request, const Contexts::Current &where,
                       const Act &act, const Undo &undo, CUdeviceptr *address);
  // Settles what a block of a pool cost, and enters it; `bytes` of it are the program's.
  CUresult enter_from(const StreamPools::PoolRef &pool, const Request &request, const Contexts::Current &where,
                      const ContextRef &owner, std::uint64_t bytes, const Undo &undo, CUdeviceptr obtained,
                      CUdeviceptr *address);
  CUresult allocate_async(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                          CUdeviceptr *address);
  void preallocate_async(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool);
  CUresult refuse_dead();
  CUresult defer_free(CUdeviceptr address, const Block &block);
  CUresult finish_deferred(const char *api, int device);
  std::optional<Block> async_block_at(CUdeviceptr address);
  CUresult end_with(AddressBook &book, const char *api, std::uint64_t address, const std::function<CUresult()> &act);
  void end_block(const char *api, const AddressedBlock &block);
  void record_end(const char *api, CUdeviceptr address, const Block &block, CUstream stream);
  void discharge(const Block &block);
  void end_piece(const char *api, const PhysicalMemory::PieceRef &piece);
  void end_mappings(const char *api, std::uint64_t array);
  void keep_block(AddressBook &book, const AddressedBlock &block);
  void end_begun_blocks(AddressBook &book, const char *api, const ContextRef &context);
  CUresult end_known_context(const char *api, const ContextRef &context, const std::function<CUresult()> &act,
                             const std::function<bool()> &is_gone);
  void charge_own_memory(const ContextRef &context);
  ContextRef context_of(CUstream stream);
  bool device_of(CUgreenCtx green, CUdevice &device);  // false, and untouched: made behind our back
  static bool is_gone(CUdevice device);                // the driver says so of its primary context

  const Options options_;
  ledger::Ledger ledger_;
  events::Journal journal_;
  Devices devices_;
  FastPaths fast_paths_;
  Contexts contexts_;
  AddressBook book_;    // by address
  AddressBook arrays_;  // by handle
  ArrayCosts array_costs_;
  PhysicalMemory physical_;
  const ContextRef nowhere_ = std::make_shared<Context>();  // of what belongs to no context
  PendingFrees pending_;
  StreamPools stream_pools_;
  BlockPools pools_;
  AsyncPools async_;
  IpcImporter imports_;
  std::atomic<bool> said_no_sharing_{false};
  std::atomic<std::uint64_t> names_given_{1};
  RankedMutex greens_mutex_{Rank::kGreens};
  std::unordered_map<CUgreenCtx, CUdevice> greens_ GUARDED_BY(greens_mutex_);
  events::Via (*via_of_)(const void *caller) = nullptr;
};

}  // namespace ration::policy

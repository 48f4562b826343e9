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
#include "policy/address_book.h"
#include "policy/contexts.h"
#include "policy/devices.h"
#include "policy/imports.h"
#include "policy/pending_frees.h"
#include "policy/pools.h"
#include "policy/request.h"

namespace ration::policy {

// From here on a block shared as the driver's own can be had by any process, with Ration or without.
inline constexpr std::uint64_t kLargeBytes = 2U << 20U;

struct Options {
  bool show_limit = true;         // queries tell the limit as the size of the device
  bool charge_context = false;    // a context's own memory counts against the limit
  bool pool = false;              // blocks come from pools (mode pool), where the driver allows it
  bool synchronous_free = false;  // a free waits for the work before it
  bool large_direct = false;      // blocks of kLargeBytes and more are the driver's own (ipc=direct)
};

// What one driver call obtained.
struct Obtained {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};

class Policy {
 public:
  Policy(const Options &options, LimitSource &limits, events::JournalOptions journal, std::string &problem);

  // Reserves, runs `act` (one real driver call), commits. Denied: CUDA_ERROR_OUT_OF_MEMORY and `act` did not run, or
  // what it took was given back. The driver's own error goes back verbatim. Only success writes `*address`.
  CUresult allocate(const Request &request, const std::function<CUresult(Obtained &)> &act, CUdeviceptr *address);

  // Frees with one real driver call. A block that is none of ours is the driver's to answer.
  CUresult free(const char *api, CUdeviceptr address, const std::function<CUresult()> &act);
  // The same in stream order: the block ends now, its bytes stay charged until `stream` got here.
  CUresult free_in_stream(const char *api, CUdeviceptr address, CUstream stream, const std::function<CUresult()> &act);

  // Virtualises what the driver answered: total and free bytes as this process can really have them. NULL-safe.
  void present_memory(std::size_t *free_bytes, std::size_t *total_bytes);
  void present_total(std::size_t *total_bytes, CUdevice device);

  // What the driver would say of one of its own allocations, for a block of a pool. `handled`: the address was ours to
  // answer for; else ask the driver.
  CUresult address_range(CUdeviceptr address, CUdeviceptr *base, std::size_t *bytes, bool &handled);
  // Whether an address lies in a pool's slab without being part of a live block: to the program, no memory at all.
  bool is_dead(CUdeviceptr address);
  // The driver's handle of a pool's block would open the whole slab to another process: it gets one of ours.
  CUresult share(const char *api, CUipcMemHandle *handle, CUdeviceptr address, const std::function<CUresult()> &act);
  // Runs `act`, which opens a handle of the driver's, where one of ours leads there, or with what is none of ours.
  CUresult open_shared(const CUipcMemHandle &handle, const Imports::Open &act, CUdeviceptr *address);
  CUresult close_shared(CUdeviceptr address, const std::function<CUresult()> &act);
  // At the end of the process: what it shared can be opened no more.
  void stop_sharing() noexcept { pools_.exports().leave(); }

  // Streams that begin and end captures or go, and a context that the program itself synchronises (nullptr: the current
  // one). Each runs `act`, the driver's call.
  CUresult begin_capture(CUstream stream, const std::function<CUresult()> &act);
  CUresult end_capture(CUstream stream, const std::function<CUresult()> &act);
  CUresult destroy_stream(CUstream stream, const std::function<CUresult()> &act);
  CUresult synchronise(CUcontext context, const std::function<CUresult()> &act);

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
  CUresult deny(const Request &request, const Contexts::Current &where, events::Reason reason);
  static CUresult refuse_unknown(const std::function<CUresult(Obtained &)> &act);
  void record_oom(const char *api, std::uint64_t requested, int device, events::Reason reason, const Context *of,
                  bool sharing = false);
  static void explain_group(const ledger::Account &account, events::GroupState &group);
  CUresult allocate_direct(const Request &request, const Contexts::Current &where,
                           const std::function<CUresult(Obtained &)> &act, CUdeviceptr *address);
  events::Via via_of(const Request &request) const;
  CUresult enter(const Request &request, const Contexts::Current &where, const Obtained &obtained,
                 std::uint64_t duration_ns);
  void end_block(const char *api, const AddressedBlock &block);
  void keep_block(const AddressedBlock &block);
  void end_begun_blocks(const char *api, const ContextRef &context);
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
  HitLanes lanes_;
  Contexts contexts_;
  AddressBook book_;
  PendingFrees pending_;
  Pools pools_;
  Imports imports_;
  std::atomic<bool> said_no_sharing_{false};
  RankedMutex greens_mutex_{Rank::kGreens};
  std::unordered_map<CUgreenCtx, CUdevice> greens_ GUARDED_BY(greens_mutex_);
  events::Via (*via_of_)(const void *caller) = nullptr;
};

}  // namespace ration::policy

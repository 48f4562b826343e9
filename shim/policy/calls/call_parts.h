// The collaborators of this folder's classes, in one struct, and the user's options.
// Layer: policy/calls. Threads: values, fixed once the runtime has filled them in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "events/diagnostics.h"
#include "policy/block_pool/block_pools.h"
#include "policy/calls/admission.h"
#include "policy/calls/async_memory.h"
#include "policy/calls/books.h"
#include "policy/calls/mapped_memory.h"
#include "policy/calls/overhead.h"
#include "policy/calls/room_maker.h"
#include "policy/calls/sync_memops.h"
#include "policy/contexts/any_context.h"
#include "policy/contexts/captures.h"
#include "policy/devices/faults.h"
#include "policy/driver_pools/async_pools.h"
#include "policy/driver_pools/default_pools.h"
#include "policy/imports/ipc_importer.h"
#include "policy/physical/pending_frees.h"

namespace ration::policy {

// The user's options.
struct Options {
  bool show_limit = true;         // queries report the limit as the size of the device
  bool charge_context = false;    // a context's own memory counts against the limit
  bool pool = false;              // blocks come from our pools (mode pool), where the driver allows it
  bool synchronous_free = false;  // a free waits for the work that was submitted before it
  bool limit_managed = true;      // managed memory counts against the limit, in its full size
  bool async = false;             // blocks come from the driver's pools (mode async), where a device has them
  bool deterministic = false;     // mode async: pools never reuse memory because of an order that the driver found
  bool large_direct = false;      // ipc=direct: large blocks come directly from the driver
  BackingKind backing = BackingKind::slab;
  std::uint64_t wait_ns = 0;  // how long an allocation may wait for other members of its group; 0: not at all
  std::vector<FaultRule> faults{};

  // Whether freed blocks may wait until the program synchronises.
  bool defers() const { return pool || async; }
};

// The collaborators of all calls.
struct CallParts {
  const Options &options;
  Faults &faults;
  ProcessFigures &figures;
  ledger::Ledger &ledger;
  events::Journal &journal;
  Devices &devices;
  Contexts &contexts;
  Captures &captures;
  FenceTracker &fences;
  IpcExporter &exports;
  PendingFrees &pending;
  StreamPools &stream_pools;
  DefaultPools &default_pools;
  BlockPools &pools;
  AsyncPools &async_pools;
  IpcImporter &imports;
  RoomMaker &room;
  Books &books;
  Admission &admission;
  AsyncMemory &async_memory;
  SyncMemops &sync_memops;
  Overhead &overhead;
  MappedMemory &mapped_memory;

  ledger::Account &account(int device) const noexcept { return ledger.account(device); }
  std::optional<std::uint64_t> device_free(int device) const noexcept { return policy::device_free(contexts, device); }
};

}  // namespace ration::policy

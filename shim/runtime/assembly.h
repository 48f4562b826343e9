// All objects of the policy, built once and connected. Hooks call only the last members, one for each family of hooks.
// Layer: runtime. Threads: built by one thread; every member is safe afterwards.
#pragma once

#include <string>
#include <vector>

#include "base/address_space.h"
#include "policy/calls/array_memory.h"
#include "policy/calls/call_parts.h"
#include "policy/calls/context_life.h"
#include "policy/calls/device_memory.h"
#include "policy/calls/device_reach.h"
#include "policy/calls/graph_memory.h"
#include "policy/calls/host_memory.h"
#include "policy/calls/queries.h"
#include "policy/calls/shared_blocks.h"
#include "policy/calls/stream_memory.h"
#include "policy/calls/sync_and_capture.h"

namespace ration::runtime {

using policy::Options;

struct Assembly {
  // `problem` says why the requested log cannot be written; empty if there is no problem. `figures` must outlive this
  // object.
  Assembly(Options asked, policy::LimitSource &limits, events::JournalOptions journal_options,
           policy::ProcessFigures &figures, std::string &problem);

  // Writes the log's first line if the driver can already be asked about the devices that the line describes.
  void describe();
  // Adds the names of the groups to the totals, for the summary of `ration run`.
  void name_groups(const std::vector<events::DeviceFacts> &devices);

  const Birthplace birthplace;
  const Options options;
  const policy::CallParts parts;
  policy::Faults faults;
  ledger::Ledger ledger;
  events::Journal journal;
  policy::Devices devices;
  policy::ContextPools context_pools;
  policy::Contexts contexts;
  policy::Captures captures;
  policy::FenceTracker fences;
  policy::IpcExporter exports;
  policy::PendingFrees pending;
  policy::StreamPools stream_pools;
  policy::DefaultPools default_pools;
  policy::BlockPools pools;
  policy::AsyncPools async_pools;
  policy::IpcImporter imports;
  policy::RoomMaker room;
  policy::Books books;
  policy::Admission admission;
  policy::AsyncMemory async_memory;
  policy::SyncMemops sync_memops;
  policy::Overhead overhead;

  policy::DeviceMemory device_memory;
  policy::HostMemory host_memory;
  policy::MappedMemory mapped_memory;
  policy::ArrayMemory array_memory;
  policy::StreamMemory stream_memory;
  policy::GraphMemory graph_memory;
  policy::SharedBlocks shared_blocks;
  policy::ContextLife context_life;
  policy::SyncAndCapture sync_and_capture;
  policy::DeviceReach device_reach;
  policy::Queries queries;
};

}  // namespace ration::runtime

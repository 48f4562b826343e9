// The driver's calls for the plans of a pool that stitches: physical memory, which is charged and in the log, and its
// places in reserved addresses.
// Layer: policy/block_pool. Threads: lives on the stack of one call; GranuleLog: any.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/lock.h"
#include "policy/block_pool/device_pool.h"
#include "policy/block_pool/granule_support.h"
#include "policy/block_pool/publication.h"
#include "policy/block_pool/unreturned.h"
#include "pool/stitch/device_memory.h"

namespace ration::policy {

// The numbers of granules in the log, and the log and sums of each.
class GranuleLog {
 public:
  GranuleLog(events::Journal &journal, DevicePools &pools) : journal_(journal), pools_(pools) {}

  // Throws bad_alloc, with nothing changed.
  void note(const Context &context, std::uint64_t handle, std::uint64_t bytes, const char *why,
            std::uint64_t duration_ns);
  void note_end(const char *api, const Context &context, std::uint64_t handle, std::uint64_t bytes) noexcept;

 private:
  events::Journal &journal_;
  DevicePools &pools_;
  RankedMutex mutex_{Rank::kGranules};
  std::unordered_map<std::uint64_t, std::uint64_t> numbers_ GUARDED_BY(mutex_);  // by handle
};

// What granules of all devices work with.
struct GranuleParts {
  ledger::Ledger &ledger;
  GranuleSupport &support;
  GranuleLog &log;
  Unreturned &unreturned;
  Publication &publication;
};

class GranuleMemory final : public pool::stitch::DeviceMemory {
 public:
  GranuleMemory(const GranuleParts &parts, const char *api, const ContextRef &context)
      : parts_(parts),
        api_(api),
        context_(context),
        account_(parts.ledger.account(context->device)),
        change_(account_.changes()) {
    parts.unreturned.retry();
  }
  // Gives back what the end of the last plan left reserved.
  ~GranuleMemory() override { release_rest(); }

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override;
  // What it held stays reserved until release_rest(), for the parts of a handle that is divided.
  void release(std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool allow(pool::Address address, std::uint64_t bytes) noexcept override;
  bool unmap(pool::Address address, std::uint64_t bytes) noexcept override;
  void release_rest() noexcept override;
  // A mapping that the driver has not undone. The memory under it is the device's still: as much of what was released
  // stays charged.
  void leave_mapped(std::uint64_t address, std::uint64_t bytes) noexcept;
  // Handles.
  std::uint64_t released() const { return released_; }

 private:
  const GranuleParts &parts_;
  const char *const api_;
  const ContextRef &context_;
  ledger::Account &account_;
  const ledger::Change change_;  // what was released is charged until release_rest()
  std::uint64_t reserved_ = 0;   // that no handle has
  std::uint64_t released_ = 0;
};

}  // namespace ration::policy

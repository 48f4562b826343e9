// The driver calls by which a pool of granules carries out its plans: they create physical memory, which is charged and
// logged, and map it at reserved addresses.
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

// Gives each granule a number, logs its creation and its end, and keeps the device's sums.
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

// The parts of the program with which the granules of all devices work.
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
  // Releases the bytes that the last plan left reserved.
  ~GranuleMemory() override { release_rest(); }

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override;
  // The released bytes stay reserved until release_rest(): if a granule is divided, its parts use them.
  void release(std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool allow(pool::Address address, std::uint64_t bytes) noexcept override;
  bool unmap(pool::Address address, std::uint64_t bytes) noexcept override;
  void release_rest() noexcept override;
  // Notes a mapping that the driver did not undo. The driver still holds the memory under it, so that many of the
  // released bytes stay charged.
  void leave_mapped(std::uint64_t address, std::uint64_t bytes) noexcept;
  // The number of handles that were released.
  std::uint64_t released() const { return released_; }

 private:
  const GranuleParts &parts_;
  const char *const api_;
  const ContextRef &context_;
  ledger::Account &account_;
  const ledger::Change change_;  // released bytes are charged until release_rest()
  std::uint64_t reserved_ = 0;   // bytes that belong to no handle
  std::uint64_t released_ = 0;
};

}  // namespace ration::policy

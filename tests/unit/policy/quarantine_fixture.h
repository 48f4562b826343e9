// A quarantine and what it needs, on the fake driver. Blocks are cut from a slab that exists only in the address book.
#pragma once

#include <optional>
#include <vector>

#include "policy/block_pool/quarantine.h"
#include "unit/policy/host_memory.h"
#include "unit/policy/program.h"

namespace ration::test {

struct QuarantineFixture {
  static constexpr std::uint64_t kBytes = 64 * kMiB;
  static constexpr std::uint64_t kUnlimited = UINT64_MAX;

  QuarantineFixture() {
    context = add_context();
    pool.emplace(*context);
    REQUIRE(pool->blocks.add_slab({0x100000000, kBytes, 1}) == pool::AddSlabOutcome::kAdded);
    quarantine.set_sizes(kBytes, 0, kUnlimited);
  }

  policy::ContextRef add_context(int device = 0) {
    CUcontext handle = nullptr;
    REQUIRE(driver.create(&handle, device) == CUDA_SUCCESS);
    return contexts.note_created(handle, device);
  }
  // Ends a context as the driver and the policy do, as far as the quarantine is concerned.
  void destroy(const policy::ContextRef &gone) {
    REQUIRE(driver.destroy(gone->handle) == CUDA_SUCCESS);
    contexts.forget(gone, "cuCtxDestroy_v2");
    fences.forget(gone);
  }
  pool::Address take(std::uint64_t bytes = 512) {
    pool::NoUpstream none;
    const pool::AllocateOutcome outcome = pool->blocks.allocate(bytes, none);
    REQUIRE(outcome);
    return outcome.block.address;
  }
  policy::Quarantine::PendingRecord retire(pool::Address address, bool *due = nullptr) {
    policy::Quarantine::PendingRecord pending;
    std::uint64_t bytes = 0;
    bool is_due = false;
    REQUIRE(quarantine.retire(*pool, address, bytes, pending, is_due) == policy::Quarantine::Retired::retired);
    if (due != nullptr) {
      *due = is_due;
    }
    return pending;
  }
  // Takes and frees one block; returns true if the free reports that a seal is due.
  bool free_one(std::uint64_t bytes = 512) {
    bool due = false;
    retire(take(bytes), &due);
    return due;
  }
  policy::Quarantine::Cleaned collect() { return quarantine.collect(policy::Quarantine::Sealing::always); }
  policy::Quarantine::Cleaned wait() { return quarantine.wait(quarantine.reclaimed()); }
  std::uint64_t retired() { return pool->blocks.statistics().retired_blocks; }

  FakeDriver driver;
  TestLimits limits;
  ledger::Ledger ledger;
  policy::Devices devices{limits, ledger};
  policy::ContextPools context_pools;
  std::string problem;
  events::Journal journal{Program::journal_options(""), problem};
  policy::Contexts contexts{devices};
  policy::Captures captures;
  policy::FenceTracker fences{contexts, captures};
  policy::ContextRef context;
  std::optional<policy::ContextPool> pool;
  policy::Quarantine quarantine{fences, context_pools, 0};
};

}  // namespace ration::test

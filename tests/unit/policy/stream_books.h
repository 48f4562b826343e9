// The records of the driver's pools, used without a policy. Threads: as FakeMemPools.
#pragma once

#include "catch.h"
#include "policy/driver_pools/stream_pools.h"
#include "unit/policy/fake_mem_pools.h"
#include "unit/policy/program.h"

namespace ration::test {

inline constexpr char kApi[] = "cuMemAllocAsync";
inline const CUmemoryPool kPool = FakeMemPools::handle(1);
inline const CUmemoryPool kOther = FakeMemPools::handle(2);

struct StreamBooks {
  // One call as the policy makes it, with its upper bound reserved beforehand.
  void allocate(CUmemoryPool handle, std::uint64_t bytes, int device = 0) {
    const policy::StreamPools::PoolRef pool = pools.find(handle, device);
    const std::uint64_t bound = pools.upper_bound(*pool, bytes);
    REQUIRE(account(device).reserve(bound) == ledger::ReserveOutcome::granted);
    const policy::StreamPools::Call call = pools.begin(*pool, bound);
    const CUresult result = memory.allocate(&last, bytes, handle);
    if (const std::uint64_t unused = pools.finish(*pool, call, result == CUDA_SUCCESS); unused > 0) {
      account(device).release(unused);
    }
    if (result != CUDA_SUCCESS) {
      return;
    }
    missing = pools.reconcile(kApi, *pool);
  }
  void free(CUmemoryPool handle, CUdeviceptr address) {
    REQUIRE(memory.free(address) == CUDA_SUCCESS);
    pools.block_ended(*pools.known(handle));
  }
  void destroy(CUmemoryPool handle, bool success = true) {
    const policy::StreamPools::PoolRef pool = pools.begin_destroy(handle);
    REQUIRE(pool != nullptr);
    pools.finish_destroy(pool, success);
  }
  ledger::Account &account(int device = 0) { return ledger.account(device); }
  std::uint64_t charged(int device = 0) { return account(device).charged(); }
  std::uint64_t reported() { return journal.tally().devices[0].reserved_bytes; }

  FakeDriver driver;
  FakeMemPools memory;
  ledger::Ledger ledger;
  std::string problem;
  events::Journal journal{Program::journal_options(""), problem};
  policy::StreamPools pools{ledger, journal};
  CUdeviceptr last = 0;
  std::uint64_t missing = 0;
};

inline CUmemPoolProps at(CUmemLocationType type, int id) {
  CUmemPoolProps properties{};
  properties.location.type = type;
  properties.location.id = id;
  return properties;
}

}  // namespace ration::test

// The driver's memory pools for one test, in addition to its FakeDriver. They grow in steps, and keep freed memory
// until they are trimmed. Threads: any; a test reads and sets public members while no other thread runs.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "unit/policy/fake_driver.h"

namespace ration::test {

class FakeMemPools {
 public:
  FakeMemPools();
  FakeMemPools(const FakeMemPools &) = delete;
  FakeMemPools &operator=(const FakeMemPools &) = delete;

  struct Pool {
    std::uint64_t used = 0, reserved = 0;
    int trims = 0;
  };
  std::uint64_t step = 32 * kMiB;  // the step by which a pool grows
  std::uint64_t kept_in_use = 0;   // freed bytes that the device still uses
  std::function<void()> on_asked;  // inside cuMemPoolGetAttribute, after the answer
  std::function<void()> on_alloc;  // inside cuMemAllocFromPoolAsync, after it has allocated
  std::map<CUmemoryPool, Pool> pools;
  CUmemoryPool current = handle(1);  // of the first device

  static CUmemoryPool handle(std::uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number); }
  CUresult allocate(CUdeviceptr *address, std::uint64_t bytes, CUmemoryPool pool);
  CUresult free(CUdeviceptr address);
  std::uint64_t held() const;

 private:
  template <class Body>
  static CUresult locked(const char *function, const Body &body);

  struct Block {
    CUmemoryPool pool;
    std::uint64_t bytes;
  };
  std::mutex mutex_;
  std::map<CUdeviceptr, Block> blocks_;
  CUdeviceptr next_address_ = 0x100000000000;
};

}  // namespace ration::test

// Operations on stream-ordered memory and its pools.
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"
#include "tests/oracle/stamp.h"

namespace oracle {
namespace {

Pool *live_pool(const Words &words, size_t index) {
  const int number = number_of(word(words, index));
  if (number < 0 || number >= kMost || objects().pools[number].life != Life::kLive) return nullptr;
  return &objects().pools[number];
}

// q3, or default1: the pool of device 1 by default.
CUmemoryPool pool_word(const Words &words, size_t index) {
  CUmemoryPool handle = nullptr;
  if (word(words, index).starts_with("default")) {
    cuDeviceGetDefaultMemPool(&handle, number_of(word(words, index)));
  } else if (const Pool *pool = live_pool(words, index)) {
    handle = pool->handle;
  }
  return handle;
}

std::string allocate(const Words &words, size_t stream_index) {
  Block *const unused = unused_block(words, 0);
  CUstream stream = nullptr;
  if (unused == nullptr || !stream_word(words, stream_index, stream)) return kSkipped;
  Block &block = *unused;
  const size_t bytes = size_word(words, 1);
  CUmemoryPool pool = nullptr;
  if (stream_index == 3) {
    pool = pool_word(words, 2);
    if (pool == nullptr) return kSkipped;
  }
  const CUresult code = pool == nullptr ? cuMemAllocAsync(&block.address, bytes, stream)
                                        : cuMemAllocFromPoolAsync(&block.address, bytes, pool, stream);
  if (code != CUDA_SUCCESS) return code_text(code);
  block.life = Life::kLive;
  block.kind = Kind::kOrdered;
  block.bytes = bytes;
  const int named = number_of(word(words, stream_index));
  block.home = named < 0 ? current_context() : objects().streams[named].context;
  return "0:" + code_text(stamp_in_order(block, stream));
}

std::string from_current_pool(const Words &words) {
  return allocate(words, 2);
}

std::string from_pool(const Words &words) {
  return allocate(words, 3);
}

std::string make_pool(const Words &words) {
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().pools[number].life != Life::kNone) return kSkipped;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, number_of(word(words, 1))};
  const CUresult code = cuMemPoolCreate(&objects().pools[number].handle, &properties);
  if (code == CUDA_SUCCESS) objects().pools[number].life = Life::kLive;
  return code_text(code);
}

std::string end_pool(const Words &words) {
  Pool *pool = live_pool(words, 0);
  if (pool == nullptr) return kSkipped;
  pool->life = Life::kDead;
  return code_text(cuMemPoolDestroy(pool->handle));
}

std::string threshold(const Words &words) {
  const CUmemoryPool pool = pool_word(words, 0);
  cuuint64_t bytes = size_word(words, 1);
  return pool == nullptr ? kSkipped : code_text(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

std::string trim(const Words &words) {
  const CUmemoryPool pool = pool_word(words, 0);
  return pool == nullptr ? kSkipped : code_text(cuMemPoolTrimTo(pool, size_word(words, 1)));
}

}  // namespace

void add_ordered(Operations &all) {
  all.insert({{"alloc_async", from_current_pool},
              {"alloc_from", from_pool},
              {"pool", make_pool},
              {"end_pool", end_pool},
              {"threshold", threshold},
              {"trim", trim}});
}

}  // namespace oracle

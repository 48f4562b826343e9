// How does a driver's memory pool grow, what does it keep, and when does it give memory back: growth step, release
// threshold, trimming at a synchronise, maxSize, and whether cuMemAlloc can take what a pool only retains?
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

// A pool of our own on the device.
class Pool {
 public:
  explicit Pool(cuuint64_t threshold, std::size_t most = 0) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    props.maxSize = most;
    must(cuMemPoolCreate(&pool_, &props));
    must(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  }
  ~Pool() { cuMemPoolDestroy(pool_); }
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  CUmemoryPool get() const { return pool_; }

 private:
  CUmemoryPool pool_ = nullptr;
};

std::uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  must(cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

std::uint64_t reserved(CUmemoryPool pool) {
  return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

CUstream new_stream(Cleanup &cleanup) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  return stream;
}

void grow(Test &test, const std::string &which, CUmemoryPool pool) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  for (const std::size_t bytes : {std::size_t{1}, kMiB, 31 * kMiB, 33 * kMiB, 100 * kMiB, 1025 * kMiB}) {
    const std::size_t before = free_bytes();
    const std::uint64_t held = reserved(pool), used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    CUdeviceptr block = 0;
    must(cuMemAllocFromPoolAsync(&block, bytes, pool, stream));
    must(cuStreamSynchronize(stream));
    const std::string name = which + "_for_" + (bytes == 1 ? "1B" : size_name(bytes));
    test.number("reserved_bytes_" + name, reserved(pool) - held);
    test.number("used_bytes_" + name, attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) - used);
    test.number("device_bytes_" + name, before - free_bytes());
    must(cuMemFreeAsync(block, stream));
    must(cuStreamSynchronize(stream));
    test.number("reserved_bytes_after_the_free_" + name, reserved(pool));
    must(cuMemPoolTrimTo(pool, 0));
  }
}

void growth(Test &test) {
  CUmemoryPool pool = nullptr;
  must(cuDeviceGetDefaultMemPool(&pool, 0));
  test.number("default_release_threshold", attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  grow(test, "by_default", pool);
  grow(test, "with_own_pool", Pool(0).get());
  test.note("What a pool with a threshold of 0 reserves for one allocation, and after its free and a synchronise.");
}

void trimming(Test &test) {
  constexpr std::size_t kThreshold = 64 * kMiB, kBytes = 512 * kMiB;
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  CUevent event = nullptr;
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  cleanup.add([event] { cuEventDestroy(event); });
  std::size_t blocks = 1;
  const auto measure = [&](const std::string &call, const std::function<void()> &act) {
    const std::string name = call + (blocks == 1 ? "" : "_of_" + std::to_string(blocks) + "_blocks");
    const Pool pool(kThreshold);
    std::vector<CUdeviceptr> all(blocks);
    for (CUdeviceptr &one : all) must(cuMemAllocFromPoolAsync(&one, kBytes / blocks, pool.get(), stream));
    for (const CUdeviceptr one : all) must(cuMemFreeAsync(one, stream));
    must(cuEventRecord(event, stream));
    // Over in fact, but the driver has not been told to look.
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) continue;
    test.number("reserved_bytes_before_" + name, reserved(pool.get()));
    act();
    test.number("reserved_bytes_after_" + name, reserved(pool.get()));
    CUdeviceptr again = 0;
    must(cuMemAllocFromPoolAsync(&again, kMiB, pool.get(), stream));
    test.number("reserved_bytes_after_an_allocation_and_" + name, reserved(pool.get()));
    must(cuMemFreeAsync(again, stream));
    must(cuStreamSynchronize(stream));
  };
  measure("nothing", [] {});
  measure("cuStreamSynchronize", [&] { must(cuStreamSynchronize(stream)); });
  measure("cuEventSynchronize", [&] { must(cuEventSynchronize(event)); });
  measure("cuCtxSynchronize", [] { must(cuCtxSynchronize()); });
  measure("cuStreamQuery", [&] { cuStreamQuery(stream); });
  measure("cuMemGetInfo", [] { free_bytes(); });
  blocks = 16;
  measure("cuStreamSynchronize", [&] { must(cuStreamSynchronize(stream)); });
  measure("cuCtxSynchronize", [] { must(cuCtxSynchronize()); });
  test.note("512 MiB in a pool with a release threshold of 64 MiB, freed, before and after a call.");
}

// Retained memory is the pool's: who else gets it when the device is full?
void retained(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  const Pool pool(~cuuint64_t{0}), other(0);
  const std::size_t bytes = std::min(free_bytes() / 10 * 8, 100 * kGiB) / kGiB * kGiB, before = free_bytes();
  CUdeviceptr block = 0;
  must(cuMemAllocFromPoolAsync(&block, bytes, pool.get(), stream));
  must(cuMemFreeAsync(block, stream));
  must(cuStreamSynchronize(stream));
  test.number("retained_bytes", reserved(pool.get()));
  const std::size_t wanted = (before - bytes) + (bytes - (before - bytes)) / 2;
  CUresult code = cuMemAlloc(&block, wanted);
  test.code("cuMemAlloc_of_more_than_is_free_code", code);
  test.number("retained_bytes_after_cuMemAlloc", reserved(pool.get()));
  if (code == CUDA_SUCCESS) must(cuMemFree(block));
  code = cuMemAllocFromPoolAsync(&block, wanted, other.get(), stream);
  test.code("another_pools_code", code);
  test.number("retained_bytes_after_another_pools_allocation", reserved(pool.get()));
  if (code == CUDA_SUCCESS) must(cuMemFreeAsync(block, stream));
  must(cuStreamSynchronize(stream));
  test.number("trim_ms", microseconds([&] { must(cuMemPoolTrimTo(pool.get(), 0)); }) / 1000);
  test.number("bytes_missing_after_the_trim", before - free_bytes());
  test.note("A pool retains most of the device; then cuMemAlloc and another pool want more than what is free.");
}

void most(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  const Pool pool(0, 64 * kMiB);
  CUdeviceptr block = 0, second = 0;
  test.code("within_code", cuMemAllocFromPoolAsync(&block, 40 * kMiB, pool.get(), stream));
  const CUresult code = cuMemAllocFromPoolAsync(&second, 40 * kMiB, pool.get(), stream);
  test.code("beyond_code", code);
  test.number("reserved_bytes", reserved(pool.get()));
  if (code == CUDA_SUCCESS) must(cuMemFreeAsync(second, stream));
  if (block != 0) must(cuMemFreeAsync(block, stream));
  must(cuStreamSynchronize(stream));
  test.note("A pool with a maxSize of 64 MiB, asked for 40 MiB twice.");
}

}  // namespace

int main() {
  return question::run({{"growth", growth}, {"trimming", trimming}, {"retained", retained}, {"maximum", most}});
}

// The bytes that the simulated devices hold for this process, by kind. Layer: driver.h. Threads: any.
#include <set>

#include "tests/simcuda/array.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/include/simcuda/simcuda.h"
#include "tests/simcuda/mem_pool.h"

int simcuda_device_books(int device, simcuda_books *books) {
  simcuda::Device *target = nullptr;
  if (books == nullptr || simcuda::phase() != simcuda::Phase::kReady) return -1;
  if (simcuda::device_of(device, &target) != CUDA_SUCCESS) return -1;
  simcuda::Driver &state = simcuda::driver();
  const simcuda::Lock lock(state.mutex);
  *books = {};
  const auto count = [&](const simcuda::Context &context) {
    const bool costs = context.device == target && !context.green() && (context.alive || context.closing);
    books->contexts += costs ? 1 : 0;
    books->context_bytes += costs ? state.settings->context_bytes : 0;
    for (const std::uint64_t bytes : context.limit_bytes) books->context_bytes += costs ? bytes : 0;
  };
  count(*target->primary);
  for (const auto &[handle, context] : state.contexts) count(*context);
  for (const auto &[handle, pool] : state.mem_pools) {
    if (pool->device == target) books->pool_bytes += pool->reserved;
  }
  books->graph_bytes = target->graph_pool.reserved;
  for (const auto &[handle, memory] : state.array_memory) {
    if (memory->context->device != target) continue;
    ++books->arrays;
    books->array_bytes += memory->bytes;
  }
  for (const auto &[address, allocation] : state.allocations) {
    // A pool's memory is counted in the pool's reserved bytes, and imported memory in its exporter.
    if (allocation.device != target || allocation.context == nullptr || allocation.import) continue;
    ++books->allocations;
    books->allocation_bytes += allocation.bytes;
  }
  std::set<const simcuda::PhysicalMemory *> counted;
  for (const auto &[number, handle] : state.virtual_memory.handles) {
    if (handle.memory->charged != target || !counted.insert(handle.memory.get()).second) continue;
    ++books->physical;
    books->physical_bytes += handle.memory->bytes;
  }
  return 0;
}

// Makes every pointer query of the driver on blocks of every kind, and prints each answer on a line: `block, question:
// code answer`. Addresses are relative to the block's start, and identifiers are shown as seen before or new, so the
// lines are the same with and without Ration. Then frees and allocates until addresses are reused.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

void say(const std::string &what, CUresult code, const std::string &reported = "") {
  std::printf("%s: %d %s\n", what.c_str(), static_cast<int>(code), code == CUDA_SUCCESS ? reported.c_str() : "");
}

void must(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "queries: %d\n", static_cast<int>(code));
  std::exit(1);
}

template <class Value>
CUresult attribute(CUpointer_attribute which, CUdeviceptr address, Value &value) {
  value = {};
  return cuPointerGetAttribute(&value, which, address);
}

unsigned long long buffer_id(CUdeviceptr address) {
  unsigned long long id = 0;
  must(attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, address, id));
  return id;
}

unsigned synchronous(CUdeviceptr address) {
  unsigned value = 7;
  must(attribute(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address, value));
  return value;
}

CUresult set_synchronous(CUdeviceptr address, unsigned value) {
  return cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
}

// Queried alone, in a list, and at the address `inside`: the answer is the same.
template <class Value>
void ask(const std::string &block, const char *name, CUpointer_attribute which, CUdeviceptr start, CUdeviceptr inside,
         bool is_address = false) {
  for (const CUdeviceptr address : {start, inside}) {
    Value alone{};
    const CUresult code = attribute(which, address, alone);
    Value listed{};
    void *places[] = {&listed};
    const CUresult in_list = cuPointerGetAttributes(1, &which, places, address);
    const auto number = static_cast<unsigned long long>(alone);
    const std::string reported = std::to_string(is_address && number >= start ? number - start : number);
    const bool same = code != CUDA_SUCCESS || alone == listed;
    say(block + (address == start ? ", " : " inside, ") + name, code,
        reported + " in a list " + std::to_string(in_list) + (same ? "" : " another"));
  }
}

void ask_all(const std::string &block, CUdeviceptr start, CUdeviceptr inside) {
  ask<unsigned>(block, "memory type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start, inside);
  ask<unsigned long long>(block, "device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, start, inside, true);
  ask<unsigned long long>(block, "host pointer", CU_POINTER_ATTRIBUTE_HOST_POINTER, start, inside, true);
  ask<unsigned>(block, "synchronous", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start, inside);
  ask<unsigned>(block, "managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, start, inside);
  ask<int>(block, "ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start, inside);
  ask<bool>(block, "shareable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, start, inside);
  ask<unsigned long long>(block, "start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, start, inside, true);
  ask<unsigned long long>(block, "size", CU_POINTER_ATTRIBUTE_RANGE_SIZE, start, inside);
  ask<int>(block, "mapped", CU_POINTER_ATTRIBUTE_MAPPED, start, inside);
  ask<unsigned long long>(block, "handle types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, start, inside);
  ask<int>(block, "RDMA", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, start, inside);
  ask<int>(block, "access", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, start, inside);
  ask<unsigned long long>(block, "mapping size", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, start, inside);
  ask<unsigned long long>(block, "mapping start", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, start, inside, true);
  CUmemoryPool pool = nullptr;
  const CUresult code = attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inside, pool);
  say(block + ", pool", code, pool == nullptr ? "none" : "one");
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult ranged = cuMemGetAddressRange(&base, &bytes, inside);
  say(block + ", range", ranged, std::to_string(start - base) + " " + std::to_string(bytes));
}

void advise(const std::string &block, CUdeviceptr start, std::size_t bytes) {
  const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  int value = 77;
  say(block + ", advised", cuMemAdvise(start, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  say(block + ", range attribute",
      cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, start, bytes),
      std::to_string(value));
  value = 77;
  void *places[] = {&value};
  std::size_t sizes[] = {sizeof value};
  CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  say(block + ", range attributes", cuMemRangeGetAttributes(places, sizes, which, 1, start, bytes),
      std::to_string(value));
  say(block + ", prefetched", cuMemPrefetchAsync(start, bytes, device, 0, nullptr));
}

// Identifiers of blocks that live at once, and of later blocks at the same addresses.
void identifiers() {
  std::vector<CUdeviceptr> blocks(64);
  std::set<unsigned long long> seen;
  std::map<CUdeviceptr, unsigned long long> at;
  std::size_t asked = 0;
  std::size_t places_again = 0;
  for (int round = 0; round < 40; ++round) {
    for (CUdeviceptr &block : blocks) {
      must(cuMemAlloc(&block, 1000));
      ++asked;
      const unsigned long long id = buffer_id(block + 999);
      seen.insert(id);
      if (buffer_id(block) != id) say("another identifier inside", CUDA_ERROR_UNKNOWN);
      places_again += at.contains(block) ? 1 : 0;
      at[block] = id;
    }
    for (const CUdeviceptr block : blocks) must(cuMemFree(block));
    must(cuCtxSynchronize());
  }
  say("identifiers", CUDA_SUCCESS, std::to_string(asked) + " blocks, " + std::to_string(seen.size()) + " of them");
  say("places used again", places_again > 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
}

void synchronous_ones() {
  CUdeviceptr block = 0, next = 0;
  must(cuMemAlloc(&block, 1000));
  must(cuMemAlloc(&next, 1000));
  say("set", set_synchronous(block + 10, 1));
  say("is", CUDA_SUCCESS, std::to_string(synchronous(block)) + " " + std::to_string(synchronous(next)));
  ask<unsigned>("a synchronous block", "synchronous", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block, block + 999);
  ask<unsigned>("its neighbour", "synchronous", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, next, next + 999);
  say("set both", set_synchronous(next, 1));
  say("taken off one", set_synchronous(block, 0));
  say("is", CUDA_SUCCESS, std::to_string(synchronous(block)) + " " + std::to_string(synchronous(next)));
  must(cuMemFree(next));
  say("set on a dead one", set_synchronous(next, 1));
  say("no value", cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  unsigned value = 1;
  say("another attribute", cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
  must(cuMemFree(block));
  must(cuCtxSynchronize());
  unsigned set = 0;
  std::vector<CUdeviceptr> blocks(2000);
  for (CUdeviceptr &each : blocks) {
    must(cuMemAlloc(&each, 1000));
    set += synchronous(each);
  }
  say("synchronous from birth", CUDA_SUCCESS, std::to_string(set));
  for (const CUdeviceptr each : blocks) must(cuMemFree(each));
}

// Each query in a list of all of them, too: correcting one answer leaves the others unchanged.
void in_one_list(CUdeviceptr block) {
  unsigned long long id = 0, start = 0, size = 0;
  unsigned type = 0, is_synchronous = 7;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void *places[] = {&id, &type, &start, &size, &is_synchronous};
  const CUresult code = cuPointerGetAttributes(5, which, places, block + 5);
  say("a list", code,
      std::to_string(id == buffer_id(block)) + " " + std::to_string(type) + " " + std::to_string(start - block) + " " +
          std::to_string(size) + " " + std::to_string(is_synchronous));
}

void ask_in_host_function(void *block) {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  say("a range in a host function", cuMemGetAddressRange(&base, &bytes, *static_cast<CUdeviceptr *>(block)));
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  must(cuInit(0));
  must(cuCtxCreate(&context, nullptr, 0, 0));
  CUdeviceptr small = 0, large = 0, ordered = 0, managed = 0, pitched = 0;
  std::size_t pitch = 0;
  must(cuMemAlloc(&small, 1000));
  must(cuMemAlloc(&large, std::size_t{40} << 20));
  must(cuMemAllocPitch(&pitched, &pitch, 1000, 30, 4));
  must(cuMemAllocAsync(&ordered, 1000, nullptr));
  must(cuMemAllocManaged(&managed, std::size_t{1} << 20, CU_MEM_ATTACH_GLOBAL));
  void *host = nullptr;
  must(cuMemAllocHost(&host, 4096));
  ask_all("a block", small, small + 999);
  ask_all("a large block", large, large + (std::size_t{40} << 20) - 1);
  ask_all("a pitched block", pitched, pitched + 29 * pitch);
  ask_all("a block in stream order", ordered, ordered + 999);
  ask_all("managed memory", managed, managed + 4096);
  ask_all("host memory", reinterpret_cast<CUdeviceptr>(host), reinterpret_cast<CUdeviceptr>(host) + 4095);
  ask_all("nothing", 0x1000, 0x1001);
  advise("a block", small, 1000);
  advise("a large block", large, std::size_t{40} << 20);
  advise("managed memory", managed, std::size_t{1} << 20);
  in_one_list(large);
  CUmemGenericAllocationHandle handle = 0;
  say("a handle of a block", cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(large)));
  identifiers();
  synchronous_ones();
  must(cuLaunchHostFunc(nullptr, &ask_in_host_function, &small));
  must(cuCtxSynchronize());
  must(cuMemFree(small));
  ask_all("a dead block", small, small + 999);
  must(cuMemFree(large));
  must(cuMemFree(pitched));
  must(cuMemFreeAsync(ordered, nullptr));
  must(cuMemFree(managed));
  must(cuMemFreeHost(host));
  say("destroyed", cuCtxDestroy(context));
  return 0;
}

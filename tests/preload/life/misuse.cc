// misuse [LOG]: makes invalid frees, queries and IPC calls, and prints one line for each answer: `what: code`, with the
// values returned. It prints no addresses, so most lines are the same without Ration. LOG gives the addresses of a
// pool's slabs; without one the cases about slabs are left out.
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "simcuda/simcuda.h"
#include "tests/preload/life/log_watch.h"
#include "tests/preload/programs/fill.h"

namespace {

constexpr size_t kBytes = 1000;  // not a multiple of a granule

void say(const std::string &what, CUresult code) {
  dprintf(1, "%s: %d\n", what.c_str(), static_cast<int>(code));
}

CUdeviceptr take(size_t bytes) {
  CUdeviceptr address = 0;
  if (cuMemAlloc_v2(&address, bytes) != CUDA_SUCCESS) {
    dprintf(1, "no memory\n");
    exit(1);
  }
  return address;
}

// Frees without a stream, unless `what` names one.
void free_everywhere(const std::string &what, CUdeviceptr address) {
  say(what + " freed", cuMemFree_v2(address));
  say(what + " freed in stream order", cuMemFreeAsync(address, nullptr));
}

void range(const std::string &what, CUdeviceptr address, CUdeviceptr block) {
  CUdeviceptr base = 77;
  size_t bytes = 77;
  const CUresult code = cuMemGetAddressRange_v2(&base, &bytes, address);
  const std::string reported = code == CUDA_SUCCESS ? std::to_string(base == block) + " " + std::to_string(bytes)
                                                    : std::string(base == 77 && bytes == 77 ? "untouched" : "touched");
  say("range of " + what + " " + reported, code);
}

template <class Value>
void attribute(const std::string &what, CUpointer_attribute which, CUdeviceptr address, Value wanted) {
  Value one{};
  say(what + " alone", cuPointerGetAttribute(&one, which, address));
  Value two{};
  void *places[] = {&two};
  say(what + " in a list", cuPointerGetAttributes(1, &which, places, address));
  dprintf(1, "%s as it should be: %d %d\n", what.c_str(), one == wanted, two == wanted);
}

void attributes(const std::string &what, CUdeviceptr address, CUdeviceptr base, size_t bytes, CUcontext context) {
  attribute(what + ", start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address, base);
  attribute(what + ", size", CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, bytes);
  attribute(what + ", context", CU_POINTER_ATTRIBUTE_CONTEXT, address, context);
  attribute(what + ", type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address,
            bytes != 0 ? CU_MEMORYTYPE_DEVICE : CUmemorytype{});
  attribute(what + ", device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address, bytes != 0 ? address : 0);
}

unsigned long long buffer_id(CUdeviceptr address) {
  unsigned long long id = 0;
  say("buffer id", cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
  return id;
}

void ask(CUcontext context) {
  const CUdeviceptr block = take(kBytes);
  const CUdeviceptr next = take(3 << 20);
  range("a block", block, block);
  range("a place in a block", block + kBytes / 2, block);
  range("the last byte of a block", next + (3 << 20) - 1, next);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  say("range, the start only", cuMemGetAddressRange_v2(&base, nullptr, block + 1));
  say("range, the size only", cuMemGetAddressRange_v2(nullptr, &bytes, block + 1));
  dprintf(1, "as it should be: %d %zu\n", base == block, bytes);
  attributes("a block", block, block, kBytes, context);
  attributes("a place in a block", block + 700, block, kBytes, context);
  dprintf(1, "buffer ids differ: %d\n", buffer_id(block) != buffer_id(next));
  dprintf(1, "buffer ids of one block differ: %d\n", buffer_id(block) != buffer_id(block + 1));
  const CUdeviceptr odd = take(1000);  // no multiple of any granule
  range("the last byte of an odd block", odd + 999, odd);
  range("the byte after an odd block", odd + 1000, odd);
  attributes("the byte after an odd block", odd + 1000, 0, 0, nullptr);
  say("a block freed", cuMemFree_v2(block));
  say("the next one freed", cuMemFree_v2(next));
  range("a dead block", block, block);
  attributes("a dead block", block, 0, 0, nullptr);
  CUcontext popped = nullptr;
  say("the context popped", cuCtxPopCurrent_v2(&popped));
  for (const CUdeviceptr address : {odd, odd + 1000, block}) {
    range("an address without a context", address, odd);
    attributes("an address without a context", address, 0, 0, nullptr);
  }
  say("the context pushed", cuCtxPushCurrent_v2(popped));
  say("the odd block freed", cuMemFree_v2(odd));
}

void free_wrongly(CUcontext context) {
  const CUdeviceptr block = take(kBytes);
  const CUdeviceptr large = take(3 << 20);
  for (const CUdeviceptr offset : {1U, 256U, 512U, 999U}) {
    free_everywhere("a place in a block", block + offset);
    free_everywhere("a place in a large block", large + 512 * offset);
  }
  say("the block freed", cuMemFree_v2(block));
  free_everywhere("it", block);
  std::thread([=] {
    cuCtxSetCurrent(context);
    say("the large block freed by another thread", cuMemFree_v2(large));
    free_everywhere("it", large);
  }).join();
  free_everywhere("it", large);
  const CUdeviceptr third = take(kBytes);
  say("freed in stream order", cuMemFreeAsync(third, nullptr));
  free_everywhere("it", third);
  say("null freed", cuMemFree_v2(0));
}

// Addresses that Ration never handed out: the driver answers.
void foreign() {
  void *host = nullptr;
  say("host memory", cuMemAllocHost_v2(&host, 1 << 20));
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  free_everywhere("host memory", pinned);
  range("host memory", pinned, pinned);
  attribute("host memory, type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned, CU_MEMORYTYPE_HOST);
  say("host memory given back", cuMemFreeHost(host));
  const char image[] = "simcuda";
  CUmodule module = nullptr;
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  simcuda_register_global("variable", 4096);
  say("a module", cuModuleLoadData(&module, image));
  say("a variable of it", cuModuleGetGlobal_v2(&variable, &bytes, module, "variable"));
  range("the driver's own variable", variable, variable);
  free_everywhere("a place in the driver's own variable", variable + 8);
  for (const CUdeviceptr garbage : {CUdeviceptr{0x1234}, CUdeviceptr{1} << 62, ~CUdeviceptr{0}, pinned}) {
    free_everywhere("garbage", garbage);
    range("garbage", garbage, 0);
  }
}

void share() {
  const CUdeviceptr block = take(kBytes);
  CUipcMemHandle handle{};
  const CUresult code = cuIpcGetMemHandle(&handle, block + 100);
  say("a block shared", code);
  const bool written =
      std::any_of(std::begin(handle.reserved), std::end(handle.reserved), [](char c) { return c != 0; });
  dprintf(1, "the handle was written: %d\n", written);
  say("the block freed", cuMemFree_v2(block));
}

// Addresses in a slab that do not start a block: its start, its holes, its last byte.
void inside_slabs(const char *log) {
  preload::LogWatch watch(log);
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(take(1 + static_cast<size_t>(i) * 997));
  }
  blocks.push_back(take(40 << 20));
  for (size_t i = 0; i < blocks.size(); i += 2) {
    say("every other block", cuMemFree_v2(blocks[i]));
  }
  watch.follow();
  int starts = 0;
  for (const auto &[address, slab] : watch.slabs()) {
    starts += watch.live().contains(address) ? 1 : 0;
    for (const CUdeviceptr inside : {address, address + 1, address + slab.bytes - 1}) {
      if (inside + 1 < address + slab.bytes || !watch.live().contains(inside / 512 * 512)) {
        free_everywhere("no block of a slab", inside);
      }
      range("no block of a slab", inside, 0);
    }
  }
  for (size_t i = 0; i < blocks.size(); i += 50) {
    free_everywhere("a hole", blocks[i] + 100);
    range("a hole", blocks[i], 0);
  }
  dprintf(1, "slabs: %d, blocks at a slab's start: %d\n", watch.slabs().empty() ? 0 : 1, starts);
}

}  // namespace

int main(int argc, char **argv) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) {
    return 1;
  }
  ask(context);
  free_wrongly(context);
  foreign();
  share();
  if (argc == 2) {
    inside_slabs(argv[1]);
  }
  return 0;
}

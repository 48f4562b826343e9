// sync_memops CASE: what is promised to a block that SYNC_MEMOPS is set on. Prints a line for each answer, `what:
// code`; for a synchronous call also what its default stream answered right after it: 0, its work is done, or 600.
#include <stdio.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <simcuda/simcuda.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kBytes = 64 * 1024;
constexpr size_t kRow = 1024;
constexpr unsigned char kOld = 1;
constexpr unsigned char kNew = 2;

void report(const std::string &what, long long value) {
  printf("%s: %lld\n", what.c_str(), value);
}

CUdeviceptr block(size_t bytes = kBytes) {
  CUdeviceptr made = 0;
  if (cuMemAlloc_v2(&made, bytes) != CUDA_SUCCESS) {
    report("no block", static_cast<long long>(bytes));
  }
  return made;
}

CUresult mark(CUdeviceptr address, unsigned value = 1) {
  return cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
}

unsigned is_marked(CUdeviceptr address) {
  unsigned value = 77;
  const CUresult asked = cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
  return asked == CUDA_SUCCESS ? value : 1000 + asked;
}

// A synchronous call in one flavour.
struct Call {
  std::string name;
  CUstream stream;
  bool of_host;  // which it always waits for
  std::function<CUresult()> run;
};

class Calls {
 public:
  Calls() {
    const CUDA_ARRAY_DESCRIPTOR shape{kRow, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    cuArrayCreate_v2(&row_, &shape);
    cuCtxGetCurrent(&context_);
  }
  // All that write to a block or read it.
  std::vector<Call> of(CUdeviceptr to, CUdeviceptr other) {
    calls_.clear();
    fills(to);
    copies(to, other, "");
    copies(other, to, " from it");
    both("cuMemcpyHtoD_v2", "", true, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, to, host_, kRow);
    both("cuMemcpyDtoH_v2", "", true, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, host_, to, kRow);
    both("cuMemcpyDtoA_v2", "", false, cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, row_, 0, to, kRow);
    both("cuMemcpyAtoD_v2", "", false, cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, to, row_, 0, kRow);
    return calls_;
  }

 private:
  template <class... Parameters>
  void both(const std::string &name, const std::string &way, bool of_host, CUresult (*plain)(Parameters...),
            CUresult (*per_thread)(Parameters...), std::type_identity_t<Parameters>... arguments) {
    calls_.push_back({name + way, CU_STREAM_LEGACY, of_host, [=] { return plain(arguments...); }});
    calls_.push_back({name + "_ptds" + way, CU_STREAM_PER_THREAD, of_host, [=] { return per_thread(arguments...); }});
  }
  void fills(CUdeviceptr to) {
    both("cuMemsetD8_v2", "", false, cuMemsetD8_v2, cuMemsetD8_v2_ptds, to, kNew, kBytes);
    both("cuMemsetD16_v2", "", false, cuMemsetD16_v2, cuMemsetD16_v2_ptds, to, 1, kBytes / 2);
    both("cuMemsetD32_v2", "", false, cuMemsetD32_v2, cuMemsetD32_v2_ptds, to, 1, kBytes / 4);
    both("cuMemsetD2D8_v2", "", false, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, to, kRow, 1, 8, 8);
    both("cuMemsetD2D16_v2", "", false, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds, to, kRow, 1, 8, 8);
    both("cuMemsetD2D32_v2", "", false, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds, to, kRow, 1, 8, 8);
  }
  void copies(CUdeviceptr to, CUdeviceptr from, const std::string &way) {
    both("cuMemcpy", way, false, cuMemcpy, cuMemcpy_ptds, to, from, kBytes);
    both("cuMemcpyDtoD_v2", way, false, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, to, from, kBytes);
    both("cuMemcpyPeer", way, false, cuMemcpyPeer, cuMemcpyPeer_ptds, to, context_, from, context_, kBytes);
    const CUDA_MEMCPY2D *const flat = &(flat_[to] = flat_box(to, from));
    both("cuMemcpy2D_v2", way, false, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, flat);
    both("cuMemcpy2DUnaligned_v2", way, false, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, flat);
    both("cuMemcpy3D_v2", way, false, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, &(deep_[to] = deep_box(to, from)));
  }
  // Neither begins where its block does.
  static CUDA_MEMCPY2D flat_box(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.dstDevice = to;
    box.srcY = box.dstY = 3;
    box.srcPitch = box.dstPitch = kRow;
    box.WidthInBytes = box.Height = 8;
    return box;
  }
  static CUDA_MEMCPY3D deep_box(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.dstDevice = to;
    box.srcZ = box.dstZ = 1;
    box.srcPitch = box.dstPitch = kRow;
    box.srcHeight = box.dstHeight = box.WidthInBytes = box.Height = 8;
    box.Depth = 2;
    return box;
  }

  std::vector<Call> calls_;
  std::map<CUdeviceptr, CUDA_MEMCPY2D> flat_;
  std::map<CUdeviceptr, CUDA_MEMCPY3D> deep_;
  CUarray row_ = nullptr;
  CUcontext context_ = nullptr;
  unsigned char host_[kRow] = {};
};

void run(const Call &call, const std::string &when = "") {
  const CUresult called = call.run();
  printf("%s%s: %d %d\n", call.name.c_str(), when.c_str(), called, cuStreamQuery(call.stream));
}

// Keeps the work of both default streams of this thread waiting until it is opened.
class Gate {
 public:
  Gate() {
    for (const CUstream stream : {CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) cuLaunchHostFunc(stream, wait, this);
  }
  ~Gate() {
    open_.store(true);
    cuCtxSynchronize();
  }
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;

 private:
  static void wait(void *gate) {
    while (!static_cast<Gate *>(gate)->open_.load()) {
    }
  }
  std::atomic<bool> open_{false};
};

// Such a call cannot wait: this thread would hang.
void run_behind_a_gate(const std::vector<Call> &calls, const std::string &when) {
  const Gate gate;
  for (const Call &call : calls) {
    if (!call.of_host) run(call, when);
  }
}

unsigned char first_byte(CUdeviceptr address) {
  return *static_cast<const volatile unsigned char *>(simcuda_host_view(address));
}

// Every call on a marked block.
void calls() {
  const CUdeviceptr marked = block(), other = block();
  cuMemsetD8_v2(marked, kOld, kBytes);
  cuCtxSynchronize();
  report("mark", mark(marked + 5));
  report("is", is_marked(marked + kBytes - 1));
  report("its neighbour is", is_marked(other));
  report("a fill", cuMemsetD8_v2(marked, kNew, kBytes));
  report("is there", first_byte(marked) == kNew ? 0 : 1);
  report("a copy", cuMemcpyDtoD_v2(other, marked, kBytes));
  report("is there, too", first_byte(other) == kNew ? 0 : 1);
  Calls all;
  for (const Call &call : all.of(marked, other)) run(call);
}

// Before any block is marked, after the mark was taken off, and on other blocks, no call waits that need not.
void unmarked() {
  const CUdeviceptr marked = block(), other = block(), third = block();
  Calls all;
  run_behind_a_gate(all.of(marked, other), "");
  report("mark", mark(marked));
  run_behind_a_gate(all.of(other, third), ", others");
  report("no mark", mark(marked, 0));
  report("is", is_marked(marked));
  run_behind_a_gate(all.of(marked, other), ", no more");
}

// The next block at the place of a marked one is not marked.
void freed() {
  const CUdeviceptr marked = block(), other = block();
  report("mark", mark(marked));
  report("free", cuMemFree_v2(marked));
  cuCtxSynchronize();
  CUdeviceptr next = 0;
  for (int i = 0; i < 100 && next != marked; ++i) next = block();
  report("the same place", next == marked ? 0 : 1);
  report("is", is_marked(next));
  Calls all;
  run_behind_a_gate(all.of(next, other), "");
}

// A block of granules that lie apart, in a full pool.
void stitched() {
  Calls all;  // its array takes memory, too
  std::vector<CUdeviceptr> small;
  for (CUdeviceptr each = 0; cuMemAlloc_v2(&each, 4 * kMiB) == CUDA_SUCCESS;) small.push_back(each);
  for (size_t i = 0; i < small.size(); i += 2) cuMemFree_v2(small[i]);
  cuCtxSynchronize();
  const CUdeviceptr large = block(small.size() / 2 * 4 * kMiB);
  report("mark", mark(large + 9 * kMiB));
  report("is", is_marked(large));
  for (const Call &call : all.of(large + 5 * kMiB, small[1])) run(call);
}

// Of its own mappings a program hears what the driver says.
void own_mapping() {
  const CUdeviceptr marked = block();
  report("mark", mark(marked));
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{memory.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  report("create", cuMemCreate(&handle, 2 * kMiB, &memory, 0));
  report("reserve", cuMemAddressReserve(&range, 2 * kMiB, 0, 0, 0));
  report("map", cuMemMap(range, 2 * kMiB, 0, handle, 0));
  report("allow", cuMemSetAccess(range, 2 * kMiB, &access, 1));
  report("mark its own", mark(range));
  report("its own is", is_marked(range));
  Calls all;
  std::vector<Call> of_own = all.of(range, range + kMiB);
  run_behind_a_gate(of_own, "");
}

// The wait is for work, so it ends no capture, and waits for none.
void captures() {
  const CUdeviceptr marked = block();
  CUstream stream = nullptr;
  report("mark", mark(marked));
  report("stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    CUgraph graph = nullptr;
    report("begin", cuStreamBeginCapture_v2(stream, mode));
    report("in the capture", cuMemsetD8Async(marked, kNew, kBytes, stream));
    const CUresult called = cuMemsetD8_v2(marked, kNew, kBytes);
    report(mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? "beside it, strictly" : "beside it", called);
    report("end", cuStreamEndCapture(stream, &graph));
    report("graph", graph != nullptr ? 0 : 1);
  }
  CUgraph graph = nullptr;
  report("begin of its own", cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  report("refused", cuMemsetD8_v2_ptds(marked, kNew, kBytes));
  report("lost", cuStreamEndCapture_ptsz(nullptr, &graph));
}

// The wait is for the default stream of the context that the call is made in.
void contexts() {
  const CUdeviceptr marked = block();
  report("mark", mark(marked));
  CUcontext first = nullptr, second = nullptr;
  cuCtxGetCurrent(&first);
  report("another context", cuCtxCreate_v2(&second, 0, 0));
  run({"cuMemsetD8_v2 there", CU_STREAM_LEGACY, false, [=] { return cuMemsetD8_v2(marked, kNew, kBytes); }});
  run({"cuMemcpyPeer there", CU_STREAM_LEGACY, false,
       [=] { return cuMemcpyPeer(marked, first, marked + kBytes / 2, first, kRow); }});
  report("mark there", mark(marked, 1));
  report("its end", cuCtxDestroy_v2(second));
  CUgreenCtx green = nullptr;
  CUdevResource all{};
  CUdevResourceDesc description = nullptr;
  cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  cuDevResourceGenerateDesc(&description, &all, 1);
  report("a green one", cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  report("converted", cuCtxFromGreenCtx(&second, green));
  report("current", cuCtxSetCurrent(second));
  run({"cuMemsetD8_v2 in it", CU_STREAM_LEGACY, false, [=] { return cuMemsetD8_v2(marked, kNew, kBytes); }});
  report("its own default stream", cuMemsetD8_v2_ptds(marked, kNew, kBytes));
  report("no context", cuCtxSetCurrent(nullptr));
  report("a fill without one", cuMemsetD8_v2(marked, kNew, kBytes));
  report("a mark without one", mark(marked, 1));
}

}  // namespace

int main(int count, char **words) {
  const std::map<std::string, void (*)()> cases{
      {"calls", calls},       {"unmarked", unmarked},       {"freed", freed},
      {"stitched", stitched}, {"own_mapping", own_mapping}, {"captures", captures},
      {"contexts", contexts}};
  const auto found = cases.find(count == 2 ? words[1] : "");
  CUcontext context = nullptr;
  if (found == cases.end() || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 2;
  }
  found->second();
  return 0;
}

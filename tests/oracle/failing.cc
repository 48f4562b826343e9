// Calls that fail, or do nothing: what they answer, what they leave in their output parameters, and whether the
// thread's context is still current. What succeeds is undone at once. And captures, in which many calls fail.
#include <algorithm>
#include <climits>
#include <cstring>
#include <string>

#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"

namespace oracle {
namespace {

constexpr std::uint64_t kBefore = 0x5a5a'5a5a'5a5a'5a5a;
constexpr CUdeviceptr kForeign = 0xdead000;

// A call to make: its number and its variant as the program gives them, and what it may write.
struct Attempt {
  std::size_t number;
  std::string variant;
  CUdeviceptr address;
  std::uint64_t outputs[2] = {kBefore, kBefore};

  bool is(const char *name) const { return variant == name; }
  template <class Output>
  Output *place(int index) {
    if (variant == (index == 0 ? "no_first" : "no_second")) return nullptr;
    return reinterpret_cast<Output *>(&outputs[index]);
  }
  CUdeviceptr address_written() const { return outputs[0]; }
};

CUresult undone(CUresult code, CUdeviceptr address) {
  if (code == CUDA_SUCCESS) cuMemFree_v2(address);
  return code;
}

CUresult plain(Attempt &it) {
  return undone(cuMemAlloc_v2(it.place<CUdeviceptr>(0), it.number), it.address_written());
}

// Of CUDA 2.0.
CUresult old(Attempt &it) {
  void *found = nullptr;
  CUdriverProcAddressQueryResult status{};
  cuGetProcAddress_v2("cuMemAlloc", &found, 2000, 0, &status);
  auto *const allocate = reinterpret_cast<decltype(&::cuMemAlloc)>(found);
  if (allocate == nullptr) return CUDA_ERROR_NOT_FOUND;
  const CUresult code =
      allocate(it.place<CUdeviceptr_v1>(0), static_cast<unsigned>(std::min<std::size_t>(it.number, UINT_MAX)));
  if (code == CUDA_SUCCESS) cuMemFree_v2(static_cast<std::uint32_t>(it.outputs[0]));
  return code;
}

CUresult pitched(Attempt &it) {
  const unsigned element = it.is("element") ? 3 : 4;
  const std::size_t height = it.is("flat") ? 0 : it.is("tall") ? std::size_t{1} << 40 : 2;
  return undone(cuMemAllocPitch_v2(it.place<CUdeviceptr>(0), it.place<std::size_t>(1), it.number, height, element),
                it.address_written());
}

CUresult managed(Attempt &it) {
  const unsigned flags = it.is("flags") ? 3 : it.is("single") ? CU_MEM_ATTACH_SINGLE : CU_MEM_ATTACH_GLOBAL;
  return undone(cuMemAllocManaged(it.place<CUdeviceptr>(0), it.number, flags), it.address_written());
}

CUresult freed_in_order(CUresult code, CUdeviceptr address) {
  if (code == CUDA_SUCCESS && address != 0) cuMemFreeAsync(address, nullptr);
  return code;
}

CUresult ordered(Attempt &it) {
  return freed_in_order(cuMemAllocAsync(it.place<CUdeviceptr>(0), it.number, nullptr), it.address_written());
}

CUresult from_pool(Attempt &it) {
  CUmemoryPool pool = nullptr;
  if (!it.is("pool")) cuDeviceGetDefaultMemPool(&pool, 0);
  return freed_in_order(cuMemAllocFromPoolAsync(it.place<CUdeviceptr>(0), it.number, pool, nullptr),
                        it.address_written());
}

CUresult physical(Attempt &it) {
  CUmemAllocationProp properties = {};
  properties.type = it.is("type") ? static_cast<CUmemAllocationType>(7) : CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, it.is("device") ? 99 : 0};
  const CUresult code = cuMemCreate(it.place<CUmemGenericAllocationHandle>(0), it.number,
                                    it.is("properties") ? nullptr : &properties, it.is("flags") ? 1 : 0);
  if (code == CUDA_SUCCESS) cuMemRelease(it.outputs[0]);
  return code;
}

CUDA_ARRAY3D_DESCRIPTOR shape_of(const Attempt &it) {
  return {it.number,
          1024,
          0,
          it.is("format") ? static_cast<CUarray_format>(0x55) : CU_AD_FORMAT_FLOAT,
          it.is("channels") ? 3u : 1u,
          0};
}

CUresult array(Attempt &it) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(it);
  const CUresult code = cuArray3DCreate_v2(it.place<CUarray>(0), it.is("properties") ? nullptr : &shape);
  if (code == CUDA_SUCCESS) cuArrayDestroy(reinterpret_cast<CUarray>(it.outputs[0]));
  return code;
}

CUresult flat_array(Attempt &it) {
  const CUDA_ARRAY_DESCRIPTOR shape = {it.number, 1024, shape_of(it).Format, shape_of(it).NumChannels};
  const CUresult code = cuArrayCreate_v2(it.place<CUarray>(0), &shape);
  if (code == CUDA_SUCCESS) cuArrayDestroy(reinterpret_cast<CUarray>(it.outputs[0]));
  return code;
}

CUresult mipmapped(Attempt &it) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(it);
  const CUresult code = cuMipmappedArrayCreate(it.place<CUmipmappedArray>(0), &shape, it.is("levels") ? 0 : 3);
  if (code == CUDA_SUCCESS) cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(it.outputs[0]));
  return code;
}

CUresult pinned(Attempt &it) {
  const CUresult code = cuMemHostAlloc(it.place<void *>(0), it.number, it.is("flags") ? 0xff00 : 0);
  if (code == CUDA_SUCCESS) cuMemFreeHost(reinterpret_cast<void *>(it.outputs[0]));
  return code;
}

CUresult registered(Attempt &it) {
  static char page[8192];
  void *const memory = it.is("no_memory") ? nullptr : static_cast<void *>(page);
  const CUresult code = cuMemHostRegister_v2(memory, it.is("empty") ? 0 : sizeof page, it.is("flags") ? 0xff00 : 0);
  if (code == CUDA_SUCCESS) cuMemHostUnregister(memory);
  return code;
}

CUresult memory(Attempt &it) {
  const CUresult code = cuMemGetInfo_v2(it.place<std::size_t>(0), it.place<std::size_t>(1));
  return code;
}

CUresult total(Attempt &it) {
  return cuDeviceTotalMem_v2(it.place<std::size_t>(0), it.is("device") ? 99 : 0);
}

CUresult attribute(Attempt &it) {
  return cuPointerGetAttribute(it.place<void>(0), static_cast<CUpointer_attribute>(it.number), it.address);
}

CUresult attributes(Attempt &it) {
  CUpointer_attribute asked[2] = {static_cast<CUpointer_attribute>(it.number), CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void *places[2] = {&it.outputs[0], &it.outputs[1]};
  return cuPointerGetAttributes(it.is("none") ? 0 : 2, asked, places, it.address);
}

CUresult range(Attempt &it) {
  return cuMemGetAddressRange_v2(it.place<CUdeviceptr>(0), it.place<std::size_t>(1), it.address);
}

CUresult shared(Attempt &it) {
  CUipcMemHandle handle;
  std::memset(&handle, 0x5a, sizeof handle);
  const CUresult code = cuIpcGetMemHandle(it.is("no_first") ? nullptr : &handle, it.address);
  std::memcpy(it.outputs, &handle, sizeof it.outputs);
  return code;
}

CUresult opened(Attempt &it) {
  CUipcMemHandle handle = {};
  return cuIpcOpenMemHandle_v2(it.place<CUdeviceptr>(0), handle, it.is("flags") ? 2 : 1);
}

CUresult exported(Attempt &it) {
  return cuMemExportToShareableHandle(it.place<void>(0), it.number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      it.is("flags") ? 1 : 0);
}

CUresult retained(Attempt &it) {
  const CUresult code =
      cuMemRetainAllocationHandle(it.place<CUmemGenericAllocationHandle>(0), reinterpret_cast<void *>(it.address));
  if (code == CUDA_SUCCESS) cuMemRelease(it.outputs[0]);
  return code;
}

CUresult dma_buf(Attempt &it) {
  return cuMemGetHandleForAddressRange(it.place<void>(0), it.address, it.number, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                       it.is("flags") ? 7 : 0);
}

CUresult unmapped(Attempt &it) {
  return cuMemUnmap(it.address, it.number);
}

CUresult mapped(Attempt &it) {
  return cuMemMap(it.address, it.number, 0, kBefore, 0);
}

CUresult accessed(Attempt &it) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuMemSetAccess(it.address, it.number, &access, 1);
}

CUresult pool(Attempt &it) {
  CUmemPoolProps properties = {};
  properties.allocType = it.is("type") ? static_cast<CUmemAllocationType>(7) : CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, it.is("device") ? 99 : 0};
  const CUresult code = cuMemPoolCreate(it.place<CUmemoryPool>(0), it.is("properties") ? nullptr : &properties);
  if (code == CUDA_SUCCESS) cuMemPoolDestroy(reinterpret_cast<CUmemoryPool>(it.outputs[0]));
  return code;
}

CUresult context(Attempt &it) {
  return cuCtxCreate_v2(it.place<CUcontext>(0), 0, 99);
}

CUresult primary(Attempt &it) {
  return cuDevicePrimaryCtxRetain(it.place<CUcontext>(0), 99);
}

const std::map<std::string, CUresult (*)(Attempt &)> kCalls = {{"alloc", plain},           {"old", old},
                                                               {"pitch", pitched},         {"managed", managed},
                                                               {"alloc_async", ordered},   {"alloc_from", from_pool},
                                                               {"physical", physical},     {"array", array},
                                                               {"flat_array", flat_array}, {"mipmapped", mipmapped},
                                                               {"pinned", pinned},         {"registered", registered},
                                                               {"memory", memory},         {"total", total},
                                                               {"attribute", attribute},   {"attributes", attributes},
                                                               {"range", range},           {"shared", shared},
                                                               {"opened", opened},         {"exported", exported},
                                                               {"retained", retained},     {"dma_buf", dma_buf},
                                                               {"unmapped", unmapped},     {"mapped", mapped},
                                                               {"accessed", accessed},     {"pool", pool},
                                                               {"context", context},       {"primary", primary}};

// What an output parameter holds now. A pitch is the same everywhere.
std::string left(std::uint64_t output, bool is_number) {
  if (output == kBefore) return "=";
  if (output == 0 || output == kBefore >> 32 << 32) return "0";
  return is_number ? std::to_string(output) : "*";
}

std::string attempt(const Words &words) {
  const auto found = kCalls.find(word(words, 0));
  if (found == kCalls.end()) return kSkipped;
  Attempt it{size_word(words, 1), word(words, 2), word(words, 3) == "null" ? 0 : kForeign};
  if (const int number = number_of(word(words, 3)); number >= 0 && number < kMost) {
    const Block &block = objects().blocks[number];
    it.address = place_word(block, words, 4);
    if (block.life == Life::kNone || is_of_another(block, it.address)) return kIncomparable;
  }
  CUcontext before = nullptr, after = nullptr;
  cuCtxGetCurrent(&before);
  const CUresult code = found->second(it);
  cuCtxGetCurrent(&after);
  const std::string current = before == after ? "" : ":another context";
  if (code == CUDA_SUCCESS) return "0" + current;
  return code_text(code) + ":" + left(it.outputs[0], false) + left(it.outputs[1], found->first == "pitch") + current;
}

std::string begin_capture(const Words &words) {
  CUstream stream = nullptr;
  if (!stream_word(words, 0, stream)) return kSkipped;
  return code_text(cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(size_word(words, 1))));
}

std::string end_capture(const Words &words) {
  CUstream stream = nullptr;
  if (!stream_word(words, 0, stream)) return kSkipped;
  auto graph = reinterpret_cast<CUgraph>(kBefore);
  const CUresult code = cuStreamEndCapture(stream, &graph);
  const bool made = graph != nullptr && graph != reinterpret_cast<CUgraph>(kBefore);
  if (made) cuGraphDestroy(graph);
  return code_text(code) + (made ? ":graph" : graph == nullptr ? ":0" : ":=");
}

}  // namespace

void add_failing(Operations &all) {
  all.insert({{"try", attempt}, {"capture", begin_capture}, {"end_capture", end_capture}});
}

}  // namespace oracle

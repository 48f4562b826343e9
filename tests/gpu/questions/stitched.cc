// Does every copy and fill work across the boundaries of a range that is stitched out of handles in no order: into it
// and out of it, by the host, by the device, in rectangles and boxes, in batches, and by a kernel?
#include <cstring>
#include <tuple>

#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kGranules = 4, kBytes = kGranules * kGranule;
constexpr std::size_t kPitch = 1 * kMiB + 512, kWidth = 1 * kMiB + 100, kRows = kBytes / kPitch;

// Copies all of `bytes`; those that work in rows may leave the end of each row alone.
struct Copy {
  const char *name;
  bool in_rows;
  CUresult (*act)(CUdeviceptr to, CUdeviceptr from, CUstream stream);
};

CUDA_MEMCPY2D rectangle(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = kPitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kRows;
  return copy;
}

CUDA_MEMCPY3D box(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = kPitch;
  copy.srcHeight = copy.dstHeight = 1;
  copy.WidthInBytes = kWidth;
  copy.Height = 1;
  copy.Depth = kRows;
  return copy;
}

CUcontext current() {
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context));
  return context;
}

CUresult copy_peer_box(CUdeviceptr to, CUdeviceptr from) {
  const CUDA_MEMCPY3D same = box(to, from);
  CUDA_MEMCPY3D_PEER copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcContext = copy.dstContext = current();
  copy.srcPitch = copy.dstPitch = same.srcPitch;
  copy.srcHeight = copy.dstHeight = 1;
  copy.WidthInBytes = kWidth;
  copy.Height = 1;
  copy.Depth = kRows;
  return reinterpret_cast<CUresult (*)(const CUDA_MEMCPY3D_PEER *)>(export_of("cuMemcpy3DPeer"))(&copy);
}

// CUmemcpyAttributes and cuMemcpyBatchAsync as in cuda.h of CUDA 13.0; the simulated driver's has neither.
struct BatchAttributes {
  int source_access_order;
  CUmemLocation source, target;
  unsigned flags;
};
constexpr int kInStreamOrder = 1;  // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
using BatchCopy = CUresult(CUdeviceptr *, CUdeviceptr *, std::size_t *, std::size_t, BatchAttributes *, std::size_t *,
                           std::size_t, CUstream);

CUresult copy_batch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  CUdeviceptr targets[2] = {to, to + kGranule + 512}, sources[2] = {from, from + kGranule + 512};
  std::size_t sizes[2] = {kGranule + 512, kBytes - kGranule - 512}, first = 0;
  BatchAttributes attributes = {};
  attributes.source_access_order = kInStreamOrder;
  attributes.source = attributes.target = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  auto *const batch = reinterpret_cast<BatchCopy *>(export_of("cuMemcpyBatchAsync_v2"));
  return batch(targets, sources, sizes, 2, &attributes, &first, 1, stream);
}

CUresult through_the_host(CUdeviceptr to, CUdeviceptr from) {
  std::vector<char> host(kBytes);
  const CUresult code = cuMemcpyDtoH(host.data(), from, kBytes);
  return code == CUDA_SUCCESS ? cuMemcpyHtoD(to, host.data(), kBytes) : code;
}

CUresult through_pinned_memory(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  void *host = nullptr;
  CUresult code = cuMemAllocHost(&host, kBytes);
  if (code != CUDA_SUCCESS) return code;
  code = cuMemcpyDtoHAsync(host, from, kBytes, stream);
  if (code == CUDA_SUCCESS) code = cuMemcpyHtoDAsync(to, host, kBytes, stream);
  cuStreamSynchronize(stream);
  cuMemFreeHost(host);
  return code;
}

CUresult through_an_array(CUdeviceptr to, CUdeviceptr from) {
  constexpr std::size_t kRow = 64 * kKiB, kElement = 4;
  const CUDA_ARRAY_DESCRIPTOR shape = {kRow / kElement, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  CUresult code = cuArrayCreate(&array, &shape);
  for (std::size_t at = 0; at < kBytes && code == CUDA_SUCCESS; at += kRow - 512) {
    const std::size_t bytes = std::min(kRow, kBytes - at);
    code = cuMemcpyDtoA(array, 0, from + at, bytes);
    if (code == CUDA_SUCCESS) code = cuMemcpyAtoD(to + at, array, 0, bytes);
  }
  cuArrayDestroy(array);
  return code;
}

const Copy kCopies[] = {
    {"cuMemcpyHtoD_and_DtoH", false, [](auto to, auto from, CUstream) { return through_the_host(to, from); }},
    {"cuMemcpyHtoDAsync_and_DtoHAsync", false, through_pinned_memory},
    {"cuMemcpyDtoD", false, [](auto to, auto from, CUstream) { return cuMemcpyDtoD(to, from, kBytes); }},
    {"cuMemcpyDtoDAsync", false,
     [](auto to, auto from, auto stream) { return cuMemcpyDtoDAsync(to, from, kBytes, stream); }},
    {"cuMemcpy", false, [](auto to, auto from, CUstream) { return cuMemcpy(to, from, kBytes); }},
    {"cuMemcpyAsync", false, [](auto to, auto from, auto stream) { return cuMemcpyAsync(to, from, kBytes, stream); }},
    {"cuMemcpyPeer", false,
     [](auto to, auto from, CUstream) { return cuMemcpyPeer(to, current(), from, current(), kBytes); }},
    {"cuMemcpyPeerAsync", false,
     [](auto to, auto from, auto stream) { return cuMemcpyPeerAsync(to, current(), from, current(), kBytes, stream); }},
    {"cuMemcpy2D", true,
     [](auto to, auto from, CUstream) {
       const CUDA_MEMCPY2D copy = rectangle(to, from);
       return cuMemcpy2D(&copy);
     }},
    {"cuMemcpy2DUnaligned", true,
     [](auto to, auto from, CUstream) {
       const CUDA_MEMCPY2D copy = rectangle(to, from);
       return cuMemcpy2DUnaligned(&copy);
     }},
    {"cuMemcpy2DAsync", true,
     [](auto to, auto from, auto stream) {
       const CUDA_MEMCPY2D copy = rectangle(to, from);
       return cuMemcpy2DAsync(&copy, stream);
     }},
    {"cuMemcpy3D", true,
     [](auto to, auto from, CUstream) {
       const CUDA_MEMCPY3D copy = box(to, from);
       return cuMemcpy3D(&copy);
     }},
    {"cuMemcpy3DAsync", true,
     [](auto to, auto from, auto stream) {
       const CUDA_MEMCPY3D copy = box(to, from);
       return cuMemcpy3DAsync(&copy, stream);
     }},
    {"cuMemcpy3DPeer", true, [](auto to, auto from, CUstream) { return copy_peer_box(to, from); }},
    {"cuMemcpyBatchAsync", false, copy_batch},
    {"cuMemcpyDtoA_and_AtoD", false, [](auto to, auto from, CUstream) { return through_an_array(to, from); }},
};

// Reads each granule by itself, so that the check crosses no boundary.
std::vector<unsigned char> read(CUdeviceptr from) {
  std::vector<unsigned char> bytes(kBytes);
  for (std::size_t at = 0; at < kBytes; at += kGranule) must(cuMemcpyDtoH(&bytes[at], from + at, kGranule));
  return bytes;
}

void write(CUdeviceptr to, const std::vector<unsigned char> &bytes) {
  for (std::size_t at = 0; at < kBytes; at += kGranule) must(cuMemcpyHtoD(to + at, &bytes[at], kGranule));
}

std::size_t different(const std::vector<unsigned char> &left, const std::vector<unsigned char> &right, bool in_rows) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < (in_rows ? kRows * kPitch : kBytes); ++i) {
    if (!in_rows || i % kPitch < kWidth) count += left[i] != right[i];
  }
  return count;
}

std::vector<unsigned char> pattern(unsigned seed) {
  std::vector<unsigned char> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    seed = seed * 1664525 + 1013904223;
    bytes[i] = static_cast<unsigned char>(seed >> 24);
  }
  return bytes;
}

void copies(Test &test) {
  Cleanup cleanup;
  CUstream stream = nullptr;
  CUdeviceptr plain = 0;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuMemAlloc(&plain, kBytes));
  cleanup.add([=] {
    cuMemFree(plain);
    cuStreamDestroy(stream);
  });
  const Stitched first(kGranules), second(kGranules);
  const auto bytes = pattern(1);
  const std::vector<unsigned char> blank(kBytes, 0x5a);
  using Pair = std::tuple<const char *, CUdeviceptr, CUdeviceptr>;
  std::size_t wrong = 0;
  for (const Copy &copy : kCopies) {
    for (const auto &[name, to, from] : {Pair{"into", first.at(), plain}, Pair{"out_of", plain, first.at()},
                                         Pair{"between", second.at(), first.at()}}) {
      write(to, blank);
      write(from, bytes);
      CUresult code = copy.act(to, from, stream);
      if (code == CUDA_SUCCESS) code = cuCtxSynchronize();
      const std::string key = std::string(copy.name) + "_" + name;
      test.code(key + "_code", code);
      if (code != CUDA_SUCCESS) continue;
      const std::size_t found = different(read(to), bytes, copy.in_rows);
      if (found > 0) test.number(key + "_wrong_bytes", found);
      wrong += found;
    }
  }
  test.number("wrong_bytes", wrong);
  if (wrong > 0) return test.fail("A copy across a boundary left wrong bytes.");
  test.note("Copies of 8 MiB between a plain block and ranges of 4 shuffled handles: code 0 and every byte right.");
}

struct Fill {
  const char *name;
  bool in_rows;
  CUresult (*act)(CUdeviceptr to, CUstream stream);
};

const Fill kFills[] = {
    {"cuMemsetD8", false, [](auto to, CUstream) { return cuMemsetD8(to, 7, kBytes); }},
    {"cuMemsetD16", false, [](auto to, CUstream) { return cuMemsetD16(to, 0x0707, kBytes / 2); }},
    {"cuMemsetD32", false, [](auto to, CUstream) { return cuMemsetD32(to, 0x07070707, kBytes / 4); }},
    {"cuMemsetD8Async", false, [](auto to, auto stream) { return cuMemsetD8Async(to, 7, kBytes, stream); }},
    {"cuMemsetD32Async", false,
     [](auto to, auto stream) { return cuMemsetD32Async(to, 0x07070707, kBytes / 4, stream); }},
    {"cuMemsetD2D8", true, [](auto to, CUstream) { return cuMemsetD2D8(to, kPitch, 7, kWidth, kRows); }},
    {"cuMemsetD2D16", true, [](auto to, CUstream) { return cuMemsetD2D16(to, kPitch, 0x0707, kWidth / 2, kRows); }},
    {"cuMemsetD2D32", true, [](auto to, CUstream) { return cuMemsetD2D32(to, kPitch, 0x07070707, kWidth / 4, kRows); }},
    {"cuMemsetD2D8Async", true,
     [](auto to, auto stream) { return cuMemsetD2D8Async(to, kPitch, 7, kWidth, kRows, stream); }},
};

void fills(Test &test) {
  const Stitched range(kGranules);
  const std::vector<unsigned char> blank(kBytes, 0x5a), expected(kBytes, 7);
  std::size_t wrong = 0;
  for (const Fill &one : kFills) {
    write(range.at(), blank);
    CUresult code = one.act(range.at(), CU_STREAM_LEGACY);
    if (code == CUDA_SUCCESS) code = cuCtxSynchronize();
    test.code(std::string(one.name) + "_code", code);
    if (code != CUDA_SUCCESS) continue;
    const std::size_t found = different(read(range.at()), expected, one.in_rows);
    if (found > 0) test.number(std::string(one.name) + "_wrong_bytes", found);
    wrong += found;
  }
  test.number("wrong_bytes", wrong);
  if (wrong > 0) return test.fail("A fill across a boundary left wrong bytes.");
  test.note("Fills of a range of 4 shuffled handles: code 0 and every byte right.");
}

void kernel(Test &test) {
  const Kernels kernels = load_kernels();
  const Stitched first(kGranules), second(kGranules);
  constexpr std::size_t kWords = kBytes / 4;
  must(fill(kernels, first.at(), kWords, 5, CU_STREAM_LEGACY));
  must(copy(kernels, second.at(), first.at(), kWords, CU_STREAM_LEGACY));
  must(cuCtxSynchronize());
  std::size_t wrong = 0;
  for (const CUdeviceptr range : {first.at(), second.at()}) {
    const auto bytes = read(range);
    for (std::size_t i = 0; i < kWords; ++i) {
      unsigned word = 0;
      std::memcpy(&word, &bytes[4 * i], 4);
      wrong += word != 5 + i;
    }
  }
  test.number("wrong_words", wrong);
  if (wrong > 0) return test.fail("A kernel that wrote across boundaries left wrong words.");
  test.note("A kernel filled one stitched range and another one copied it to a second one.");
}

}  // namespace

int main() {
  return question::run({{"copies", copies}, {"fills", fills}, {"kernel", kernel}});
}

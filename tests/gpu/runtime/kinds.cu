// Every kind of memory that the runtime hands out, written and read by a kernel or a copy: pitched, 3D, arrays with
// textures, mipmapped arrays, managed (16 MiB), pinned and registered host memory, explicit pools. A line for each
// kind.
#include <cstring>
#include <numeric>

#include "pattern.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void report(const char *kind, Counter checksum) {
  std::printf("%s: %016llx\n", kind, checksum);
}

__global__ void add_up(const float *row, std::size_t pitch, unsigned width, unsigned height, Counters *counters) {
  Counter sum = 0;
  for (unsigned y = threadIdx.x; y < height; y += blockDim.x) {
    const auto *values = reinterpret_cast<const float *>(reinterpret_cast<const char *>(row) + y * pitch);
    for (unsigned x = 0; x < width; ++x) sum += static_cast<Counter>(values[x]);
  }
  atomicAdd(&counters->sum, sum);
}

__global__ void add_up_texture(cudaTextureObject_t texture, unsigned width, unsigned height, Counters *counters) {
  Counter sum = 0;
  for (unsigned y = threadIdx.x; y < height; y += blockDim.x) {
    for (unsigned x = 0; x < width; ++x) {
      sum += static_cast<Counter>(tex2D<float>(texture, static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f));
    }
  }
  atomicAdd(&counters->sum, sum);
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021);
  return values;
}

Counter sum_of(Counters *counters) {
  const Counter sum = read(counters).sum;
  MUST(cudaMemset(counters, 0, sizeof(Counters)));
  return sum;
}

void linear(Counters *counters) {
  void *block = nullptr;
  MUST(cudaMalloc(&block, 3 * kMiB + 4));
  fill(block, 3 * kMiB + 4, 7, nullptr);
  verify(block, 3 * kMiB + 4, 7, counters, nullptr);
  cudaPointerAttributes attributes = {};
  MUST(cudaPointerGetAttributes(&attributes, static_cast<char *>(block) + 100));
  std::printf("pointer: type %d device %d\n", attributes.type, attributes.device);
  MUST(cudaFree(block));
  void *nothing = &block;
  const cudaError_t code = cudaMalloc(&nothing, 0);
  std::printf("no bytes: %s, null: %d\n", cudaGetErrorName(code), nothing == nullptr ? 1 : 0);
  MUST(cudaFree(nullptr));
  report("linear", sum_of(counters));
}

void pitched(Counters *counters) {
  constexpr unsigned kWidth = 1000, kHeight = 333;
  const std::vector<float> values = ramp(kWidth * kHeight);
  void *block = nullptr;
  std::size_t pitch = 0;
  MUST(cudaMallocPitch(&block, &pitch, kWidth * sizeof(float), kHeight));
  MUST(cudaMemcpy2D(block, pitch, values.data(), kWidth * sizeof(float), kWidth * sizeof(float), kHeight,
                    cudaMemcpyHostToDevice));
  add_up<<<1, 128>>>(static_cast<float *>(block), pitch, kWidth, kHeight, counters);
  MUST(cudaFree(block));
  report("pitched", sum_of(counters));

  cudaPitchedPtr box = {};
  const cudaExtent extent = make_cudaExtent(64 * sizeof(float), 32, 16);
  MUST(cudaMalloc3D(&box, extent));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<float *>(values.data()), 64 * sizeof(float), 64, 32);
  copy.dstPtr = box;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  MUST(cudaMemcpy3D(&copy));
  add_up<<<1, 128>>>(static_cast<float *>(box.ptr), box.pitch, 64, 32 * 16, counters);
  MUST(cudaFree(box.ptr));
  report("3D", sum_of(counters));
}

void arrays(Counters *counters) {
  constexpr unsigned kWidth = 256, kHeight = 128;
  const std::vector<float> values = ramp(kWidth * kHeight);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t flat = nullptr;
  MUST(cudaMallocArray(&flat, &format, kWidth, kHeight));
  MUST(cudaMemcpy2DToArray(flat, 0, 0, values.data(), kWidth * sizeof(float), kWidth * sizeof(float), kHeight,
                           cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = flat;
  cudaTextureDesc how = {};
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  MUST(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  add_up_texture<<<1, 128>>>(texture, kWidth, kHeight, counters);
  MUST(cudaDeviceSynchronize());
  MUST(cudaDestroyTextureObject(texture));
  MUST(cudaFreeArray(flat));
  report("array", sum_of(counters));

  cudaMipmappedArray_t mipmapped = nullptr;
  MUST(cudaMallocMipmappedArray(&mipmapped, &format, make_cudaExtent(kWidth, kHeight, 0), 4));
  cudaArray_t level = nullptr;
  MUST(cudaGetMipmappedArrayLevel(&level, mipmapped, 1));
  MUST(cudaMemcpy2DToArray(level, 0, 0, values.data(), 512, 512, kHeight / 2, cudaMemcpyHostToDevice));
  std::vector<float> back(128 * kHeight / 2);
  MUST(cudaMemcpy2DFromArray(back.data(), 512, level, 0, 0, 512, kHeight / 2, cudaMemcpyDeviceToHost));
  MUST(cudaFreeMipmappedArray(mipmapped));
  report("mipmapped", static_cast<Counter>(std::accumulate(back.begin(), back.end(), 0.0)));

  cudaArray_t deep = nullptr;
  MUST(cudaMalloc3DArray(&deep, &format, make_cudaExtent(64, 32, 8)));
  MUST(cudaFreeArray(deep));
}

void host_side(Counters *counters) {
  void *managed = nullptr;
  MUST(cudaMallocManaged(&managed, 16 * kMiB));
  std::memset(managed, 0, 16 * kMiB);
  fill(managed, 16 * kMiB, 11, nullptr);
  MUST(cudaDeviceSynchronize());
  Counter words = 0;
  for (std::size_t i = 0; i < 16 * kMiB / 4; ++i) words += static_cast<std::uint32_t *>(managed)[i];
  report("managed, read by the host", words);
  verify(managed, 16 * kMiB, 11, counters, nullptr);
  report("managed", sum_of(counters));
  MUST(cudaFree(managed));

  void *pinned = nullptr;
  MUST(cudaMallocHost(&pinned, kMiB));
  fill(pinned, kMiB, 13, nullptr);
  verify(pinned, kMiB, 13, counters, nullptr);
  report("pinned", sum_of(counters));
  MUST(cudaFreeHost(pinned));

  std::vector<char> ordinary(kMiB, 3);
  MUST(cudaHostRegister(ordinary.data(), ordinary.size(), cudaHostRegisterMapped));
  void *seen = nullptr;
  MUST(cudaHostGetDevicePointer(&seen, ordinary.data(), 0));
  fill(seen, kMiB, 17, nullptr);
  verify(seen, kMiB, 17, counters, nullptr);
  report("registered", sum_of(counters));
  MUST(cudaHostUnregister(ordinary.data()));
}

void pools(Counters *counters) {
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  MUST(cudaMemPoolCreate(&pool, &properties));
  for (const std::size_t bytes : {kMiB, 5 * kMiB, 40 * kMiB}) {
    void *block = nullptr;
    MUST(cudaMallocFromPoolAsync(&block, bytes, pool, stream));
    fill(block, bytes, 19, stream);
    verify(block, bytes, 19, counters, stream);
    MUST(cudaFreeAsync(block, stream));
  }
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaMemPoolDestroy(pool));
  MUST(cudaStreamDestroy(stream));
  report("pool", sum_of(counters));
}

void queries() {
  std::size_t before = 0, during = 0, after = 0, total = 0;
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemGetInfo(&before, &total));
  void *block = nullptr;
  MUST(cudaMalloc(&block, 512 * kMiB));
  MUST(cudaMemGetInfo(&during, &total));
  MUST(cudaFree(block));
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemGetInfo(&after, &total));
  cudaDeviceProp properties = {};
  MUST(cudaGetDeviceProperties(&properties, 0));
  std::printf("free falls by an allocation: %d, and returns: %d, total is the property: %d\n",
              before - during >= 510 * kMiB && before - during <= 514 * kMiB ? 1 : 0, after + kMiB >= before ? 1 : 0,
              total <= properties.totalGlobalMem ? 1 : 0);
  std::fprintf(stderr, "before=%zu during=%zu after=%zu total=%zu property=%zu\n", before, during, after, total,
               properties.totalGlobalMem);
}

}  // namespace

int main() {
  Counters *const counters = new_counters();
  linear(counters);
  pitched(counters);
  arrays(counters);
  host_side(counters);
  pools(counters);
  queries();
  return read(counters).wrong == 0 ? 0 : 3;
}

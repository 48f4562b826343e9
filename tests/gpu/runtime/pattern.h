// Shared by the runtime programs: errors end the program, and blocks are filled with a pattern and verified on the
// device. A plain C++ compiler compiles no kernels; the simulator's small runtime then uses fills and copies.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void must(cudaError_t code, const char *what, int line) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorName(code));
  std::exit(1);
}
#define MUST(call) must(call, #call, __LINE__)

using Counter = unsigned long long;

// Counters on the device: the number of words that differ from the filled ones, and the sum of all words.
struct Counters {
  Counter wrong;
  Counter sum;
};

// Random numbers that depend only on the seed (Knuth's MMIX generator).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2862933555777941757ull + 3037000493ull) {}
  std::uint32_t below(std::uint32_t bound) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>((state_ >> 33) % bound);
  }
  // A multiple of 4; each power of two is as likely as any other.
  std::size_t bytes(unsigned least_bits, unsigned most_bits) {
    const std::size_t base = std::size_t{1} << (least_bits + below(most_bits - least_bits));
    return base + below(static_cast<std::uint32_t>(base)) / 4 * 4;
  }

 private:
  std::uint64_t state_;
};

#ifdef __CUDACC__

__device__ inline std::uint32_t word_of(std::uint32_t seed, std::size_t i) {
  return (seed ^ static_cast<std::uint32_t>(i)) * 2654435761u + static_cast<std::uint32_t>(i >> 32);
}

__global__ void fill_words(std::uint32_t *words, std::size_t count, std::uint32_t seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    words[i] = word_of(seed, i);
  }
}

__global__ void verify_words(const std::uint32_t *words, std::size_t count, std::uint32_t seed, Counters *counters) {
  Counter wrong = 0, sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    wrong += words[i] != word_of(seed, i);
    sum += words[i];
  }
  if (wrong != 0) atomicAdd(&counters->wrong, wrong);
  if (sum != 0) atomicAdd(&counters->sum, sum);
}

inline unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>(count < 256 * 512 ? (count + 255) / 256 : 512);
}

inline void fill(void *block, std::size_t bytes, std::uint32_t seed, cudaStream_t stream) {
  fill_words<<<blocks_for(bytes / 4), 256, 0, stream>>>(static_cast<std::uint32_t *>(block), bytes / 4, seed);
  MUST(cudaGetLastError());
}

inline void verify(const void *block, std::size_t bytes, std::uint32_t seed, Counters *counters, cudaStream_t stream) {
  verify_words<<<blocks_for(bytes / 4), 256, 0, stream>>>(static_cast<const std::uint32_t *>(block), bytes / 4, seed,
                                                          counters);
  MUST(cudaGetLastError());
}

#else

inline void fill(void *block, std::size_t bytes, std::uint32_t seed, cudaStream_t stream) {
  MUST(cudaMemsetAsync(block, static_cast<int>(seed & 0xff), bytes, stream));
}

inline void verify(const void *block, std::size_t bytes, std::uint32_t seed, Counters *counters, cudaStream_t stream) {
  std::vector<unsigned char> seen(bytes);
  Counters sums = {};
  MUST(cudaMemcpyAsync(seen.data(), block, bytes, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  for (const unsigned char byte : seen) {
    sums.wrong += byte != (seed & 0xff) ? 1 : 0;
    sums.sum += byte;
  }
  Counters all = {};
  MUST(cudaMemcpy(&all, counters, sizeof all, cudaMemcpyDeviceToHost));
  all.wrong += sums.wrong;
  all.sum += sums.sum;
  MUST(cudaMemcpy(counters, &all, sizeof all, cudaMemcpyHostToDevice));
}

#endif

inline Counters *new_counters() {
  void *counters = nullptr;
  MUST(cudaMalloc(&counters, sizeof(Counters)));
  MUST(cudaMemset(counters, 0, sizeof(Counters)));
  MUST(cudaDeviceSynchronize());
  return static_cast<Counters *>(counters);
}

// Waits for the device.
inline Counters read(const Counters *counters) {
  Counters seen = {};
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy(&seen, counters, sizeof seen, cudaMemcpyDeviceToHost));
  return seen;
}

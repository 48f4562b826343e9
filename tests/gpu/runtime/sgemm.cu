// sgemm LIBRARY: multiplies matrices with cuBLAS, which it opens at run time, and prints a hash of the result's bits.
#include <dlfcn.h>

#include "pattern.h"

namespace {

using Handle = void *;  // cublasHandle_t
using Create = int (*)(Handle *);
using SetStream = int (*)(Handle, cudaStream_t);
using Multiply = int (*)(Handle, int, int, int, int, int, const float *, const float *, int, const float *, int,
                         const float *, float *, int);

void expect(int status, const char *what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s answered %d\n", what, status);
  std::exit(1);
}

template <class Function>
Function find(void *library, const char *name) {
  void *const found = ::dlsym(library, name);
  if (found == nullptr) expect(-1, name);
  return reinterpret_cast<Function>(found);
}

std::uint64_t hash_of(const std::vector<float> &values) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  const auto *bytes = reinterpret_cast<const unsigned char *>(values.data());
  for (std::size_t i = 0; i < values.size() * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

}  // namespace

int main(int count, char **arguments) {
  void *const library = ::dlopen(count > 1 ? arguments[1] : "libcublas.so.13", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 1;
  }
  Handle handle = nullptr;
  expect(find<Create>(library, "cublasCreate_v2")(&handle), "cublasCreate");
  const auto set_stream = find<SetStream>(library, "cublasSetStream_v2");
  const auto multiply = find<Multiply>(library, "cublasSgemm_v2");
  for (const int n : {64, 257, 1024, 2048}) {
    const std::size_t elements = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    std::vector<float> values(elements), product(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % 251) / 251.0f - 0.5f;
    float *a = nullptr, *b = nullptr, *c = nullptr;
    for (float **matrix : {&a, &b, &c}) MUST(cudaMalloc(reinterpret_cast<void **>(matrix), elements * sizeof(float)));
    for (float *matrix : {a, b})
      MUST(cudaMemcpy(matrix, values.data(), elements * sizeof(float), cudaMemcpyHostToDevice));
    cudaStream_t stream = nullptr;
    MUST(cudaStreamCreate(&stream));
    expect(set_stream(handle, stream), "cublasSetStream");
    const float one = 1.0f, zero = 0.0f;
    expect(multiply(handle, 0, 1, n, n, n, &one, a, n, b, n, &zero, c, n), "cublasSgemm");
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(product.data(), c, elements * sizeof(float), cudaMemcpyDeviceToHost));
    for (float *matrix : {a, b, c}) MUST(cudaFree(matrix));
    std::printf("%d: %016llx %.6g\n", n, static_cast<unsigned long long>(hash_of(product)),
                static_cast<double>(product[elements / 2]));
  }
  return 0;
}

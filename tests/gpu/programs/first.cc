// first BYTES: how long the first cuMemAlloc of a context takes, and the second, as JSON.
#include <chrono>

#include "device.h"

namespace {

double time_alloc(std::size_t bytes) {
  CUdeviceptr address = 0;
  const auto before = std::chrono::steady_clock::now();
  MUST(cuMemAlloc(&address, bytes));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - before).count();
}

}  // namespace

int main(int count, char **arguments) {
  const std::size_t bytes = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : gpu::kMiB;
  gpu::use_device();
  std::size_t free_bytes = 0, total = 0;
  MUST(cuMemGetInfo(&free_bytes, &total));  // the library is loaded and knows the device
  const double first = time_alloc(bytes);
  std::printf("{\"first_ns\": %.0f, \"second_ns\": %.0f}\n", first, time_alloc(bytes));
  return 0;
}

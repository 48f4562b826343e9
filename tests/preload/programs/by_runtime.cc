// A program of the runtime API, without a reference to the driver. Built with the static and with the shared runtime.
#include <cuda_runtime_api.h>
#include <stdio.h>

int main() {
  void *const before = reinterpret_cast<void *>(0x5a5a'5a5a'5a5a'5a5a);
  for (int blocks = 0;; ++blocks) {
    void *address = before;
    const cudaError_t code = cudaMalloc(&address, size_t{100} << 20);
    if (code != cudaSuccess) {
      dprintf(1, "blocks=%d code=%d null=%d\n", blocks, static_cast<int>(code), address == nullptr ? 1 : 0);
      return 0;
    }
  }
}

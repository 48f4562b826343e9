// A member that uses only the runtime API. It executes lines of its stdin (alloc=BYTES, free=BLOCK, query) and prints
// each one's code, as steps.cc does.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

namespace {

void *const kBefore = reinterpret_cast<void *>(0x5a5a'5a5a'5a5a'5a5a);
std::vector<void *> blocks;

int execute(const char *op) {
  const char *equals = strchr(op, '=');
  const size_t number = equals != nullptr ? strtoull(equals + 1, nullptr, 10) : 0;
  if (strncmp(op, "alloc=", 6) == 0) {
    void *address = kBefore;
    const cudaError_t code = cudaMalloc(&address, number);
    blocks.push_back(address);
    return code == cudaSuccess || address == nullptr ? static_cast<int>(code) : -1;
  }
  if (strncmp(op, "free=", 5) == 0) {
    return static_cast<int>(cudaFree(blocks.at(number)));
  }
  size_t free_bytes = 0;
  size_t total = 0;
  const cudaError_t code = cudaMemGetInfo(&free_bytes, &total);
  dprintf(1, "free=%zu total=%zu ", free_bytes, total);
  return static_cast<int>(code);
}

}  // namespace

int main() {
  char line[64];
  while (fgets(line, sizeof(line), stdin) != nullptr) {
    line[strcspn(line, "\n")] = '\0';
    const int code = execute(line);
    dprintf(1, "%s: %d\n", line, code);
  }
  return 0;
}

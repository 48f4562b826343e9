#include "tests/oracle/objects.h"

#include <algorithm>

namespace oracle {

Objects &objects() {
  static auto *all = new Objects;
  return *all;
}

int current_context() {
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return -1;
  for (int i = 0; i < kMost; ++i) {
    const Context &context = objects().contexts[i];
    if (context.life == Life::kLive && context.handle == current) return i;
  }
  return -1;
}

bool is_of_another(const Block &block, CUdeviceptr address) {
  return std::any_of(objects().blocks.begin(), objects().blocks.end(), [&](const Block &other) {
    return &other != &block && other.life != Life::kNone && address - other.address < other.bytes;
  });
}

bool used_only_in(Block &block, CUstream stream) {
  std::erase_if(block.used_in, [](CUstream used) { return cuStreamQuery(used) != CUDA_ERROR_NOT_READY; });
  return std::all_of(block.used_in.begin(), block.used_in.end(),
                     [stream](CUstream used) { return used == stream && stream != nullptr; });
}

void end_with(int context) {
  Objects &all = objects();
  for (Block &block : all.blocks) {
    if (block.context == context && block.life == Life::kLive) block.life = Life::kDead;
  }
  for (Array &array : all.arrays) {
    if (array.context == context && array.life == Life::kLive) array.life = Life::kDead;
  }
  for (Stream &stream : all.streams) {
    if (stream.context == context && stream.life == Life::kLive) stream.life = Life::kDead;
  }
  all.contexts[context].gated = nullptr;
}

}  // namespace oracle

#include "tests/oracle/objects.h"

#include <unistd.h>

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

Queue::Queue(CUstream of) : stream(of == nullptr ? CU_STREAM_LEGACY : of) {
  if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) (void)cuCtxGetCurrent(&context);
  if (stream == CU_STREAM_PER_THREAD) thread = gettid();
}

namespace {

// Another thread's stream cannot be asked.
bool is_done(const Queue &queue) {
  if (queue.thread != 0 && queue.thread != gettid()) return false;
  if (queue.context != nullptr && cuCtxPushCurrent_v2(queue.context) != CUDA_SUCCESS) return true;
  const bool done = cuStreamQuery(queue.stream) != CUDA_ERROR_NOT_READY;
  if (queue.context != nullptr) cuCtxPopCurrent_v2(nullptr);
  return done;
}

}  // namespace

bool used_only_in(Block &block, const Queue &queue) {
  std::erase_if(block.used_in, is_done);
  return std::all_of(block.used_in.begin(), block.used_in.end(), [&](const Queue &used) { return used == queue; });
}

bool unused(Block &block) {
  std::erase_if(block.used_in, is_done);
  return block.used_in.empty();
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

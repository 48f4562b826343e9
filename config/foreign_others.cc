// What is known, and says nothing that this library does: told with a reason, so that nobody takes it for a limit.
// Layer: config.
#include "config/foreign_words.h"

namespace ration::config {

namespace {

struct Known {
  std::string_view variable, why;
};

constexpr std::string_view kOwnPool = "it bounds a pool of its own program's; RATION_LIMIT holds any program";

constexpr Known kOthers[] = {
    {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "it sizes a pool inside JAX; here all memory comes from one"},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "it is what TensorFlow leaves free; RATION_RESERVE says that for any program"},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "what is wholly free always goes back before anything is refused"},
    {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "pinned memory is counted, not limited"},
    {"CUPY_GPU_MEMORY_LIMIT", kOwnPool},
    {"JULIA_CUDA_SOFT_MEMORY_LIMIT", kOwnPool},
    {"JULIA_CUDA_HARD_MEMORY_LIMIT", kOwnPool},
    {"PYTORCH_CUDA_ALLOC_CONF", kOwnPool},
    {"PYTORCH_ALLOC_CONF", kOwnPool},
    {"TENSOR_FUSION_CUDA_MEM_LIMIT", "its own library holds it; here it is written RATION_LIMIT=0=8GiB,GPU-1f2e=8GiB"},
    {"NVSHARE_ENABLE_SINGLE_OVERSUB",
     "nothing is swapped out here; RATION_MANAGED=count leaves managed memory unlimited"},
};

}  // namespace

void hear_others(ForeignWords &words) {
  for (const Known &known : kOthers) {
    if (const auto value = words.value_of(known.variable); value && !words.is_settled(known.variable)) {
      words.ignore(known.variable, *value, std::string(known.why), false);
    }
  }
}

}  // namespace ration::config

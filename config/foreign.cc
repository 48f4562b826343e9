#include "config/foreign.h"

#include "config/foreign_words.h"

namespace ration::config {

namespace {

void leave_to_framework(std::string_view framework, ForeignWords &words) {
  for (const std::string_view variable :
       {"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_ALLOCATOR", "TF_GPU_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_FORCE_UNIFIED_MEMORY",
        "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "TF_DETERMINISTIC_ALLOCATOR",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
        "TF_ENABLE_GPU_GARBAGE_COLLECTION", "TF_GPU_HOST_MEM_LIMIT_IN_MB"}) {
    if (const auto value = words.value_of(variable)) {
      words.settle(variable, *value, Standing::kLeft, std::string(framework) + ", which reads it itself");
    }
  }
  // It takes what it wants in one piece, by these variables or by its own rules; two such pieces do not fit.
  if (!words.is_said("preallocate")) {
    words.settings().preallocate = false;
    words.settings().origins.push_back({"preallocate", "false", Source::kForeign, std::string(framework), false});
  }
}

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kHonoured:
      return "honoured";
    case Standing::kOverridden:
      return "overridden";
    case Standing::kLeft:
      return "left";
    case Standing::kIgnored:
      return "ignored";
    case Standing::kRefused:
      return "refused";
  }
  return "ignored";
}

void hear_foreign(const char *const *environment, std::string_view framework, bool limit_malformed, Settings &settings,
                  std::vector<Problem> &problems) {
  ForeignWords words(environment, limit_malformed, settings, problems);
  if (framework.empty()) {
    hear_frameworks(words);
  } else {
    leave_to_framework(framework, words);
  }
  hear_limits(words);
  hear_others(words);
}

}  // namespace ration::config

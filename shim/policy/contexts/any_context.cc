#include "policy/contexts/any_context.h"

#include "policy/contexts/captures.h"

namespace ration::policy {

using driver::real;

bool ask_in_context_of(Contexts &contexts, int device, FunctionRef<void()> ask) {
  if (const Contexts::Current here = contexts.current();
      here.error == CUDA_SUCCESS && here.context->handle != nullptr && here.device == device) {
    ask();
    return true;
  }
  for (const ContextRef &context : contexts.live()) {
    if (context->device != device) {
      continue;
    }
    if (const Pin pin(*context); pin) {
      if (const CurrentFor current(context->handle); current) {
        ask();
        return true;
      }
    }
  }
  return false;
}

std::optional<std::uint64_t> device_free(Contexts &contexts, int device) noexcept try {
  std::optional<std::uint64_t> bytes;
  ask_in_context_of(contexts, device, [&] {
    const RelaxedCapture relaxed;
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    if (real.cuMemGetInfo_v2.present() && real.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS) {
      bytes = free_bytes;
    }
  });
  return bytes;
} catch (...) {  // no host memory
  return std::nullopt;
}

}  // namespace ration::policy

#include "policy/physical/array_costs.h"

#include <algorithm>
#include <utility>

#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

bool can_ask(bool mipmapped) {
  const bool asks = mipmapped ? real.cuMipmappedArrayGetMemoryRequirements.present() &&
                                    real.cuMipmappedArrayCreate.present() && real.cuMipmappedArrayDestroy.present()
                              : real.cuArrayGetMemoryRequirements.present() && real.cuArray3DCreate_v2.present() &&
                                    real.cuArrayDestroy.present();
  return asks && real.cuCtxGetDevice.present();
}

// Whether the current device supports CUDA_ARRAY3D_DEFERRED_MAPPING, so that an array with that flag takes no memory.
bool maps_later() {
  constexpr int kDeferredMapping = 121;  // cuda.h, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED
  CUdevice device = 0;
  int supported = 0;
  return real.cuDeviceGetAttribute.present() && real.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
         real.cuDeviceGetAttribute(&supported, kDeferredMapping, device) == CUDA_SUCCESS && supported != 0;
}

ArrayCosts::Key key_of(int device, const ArrayShape &shape) {
  const CUDA_ARRAY3D_DESCRIPTOR &extent = shape.descriptor;
  return {static_cast<std::uint64_t>(device),
          extent.Width,
          extent.Height,
          extent.Depth,
          static_cast<std::uint64_t>(extent.Format),
          extent.NumChannels,
          extent.Flags,
          std::uint64_t{shape.levels} << 1U | (shape.mipmapped ? 1U : 0U)};
}

template <class Handle>
CUdeviceptr number_of(Handle handle) {
  return reinterpret_cast<CUdeviceptr>(handle);
}

}  // namespace

std::optional<std::uint64_t> ArrayCosts::ask(bool mipmapped, CUdeviceptr made, CUresult &error) noexcept {
  CUdevice device = 0;
  if ((error = real.cuCtxGetDevice(&device)) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  error = mipmapped
              ? real.cuMipmappedArrayGetMemoryRequirements(&needs, reinterpret_cast<CUmipmappedArray>(made), device)
              : real.cuArrayGetMemoryRequirements(&needs, reinterpret_cast<CUarray>(made), device);
  // No array has 0 bytes, so 0 means that there is no figure.
  return error == CUDA_SUCCESS && needs.size != 0 ? std::optional<std::uint64_t>(needs.size) : std::nullopt;
}

std::optional<std::uint64_t> ArrayCosts::ask_deferred(const ContextRef &context, const ArrayShape &shape,
                                                      CUresult &error) noexcept {
  const RelaxedCapture relaxed;
  CUDA_ARRAY3D_DESCRIPTOR deferred = shape.descriptor;
  deferred.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUdeviceptr made = 0;
  if (shape.mipmapped) {
    CUmipmappedArray array = nullptr;
    error = real.cuMipmappedArrayCreate(&array, &deferred, shape.levels);
    made = number_of(array);
  } else {
    CUarray array = nullptr;
    error = real.cuArray3DCreate_v2(&array, &deferred);
    made = number_of(array);
  }
  if (error != CUDA_SUCCESS) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> bytes = ask(shape.mipmapped, made, error);
  if (!keep(context, shape.mipmapped, made)) {
    Queried::destroy(shape.mipmapped, made);
  }
  return bytes;
}

bool ArrayCosts::Queried::is_gone() const {
  const ContextRef owner = context.lock();
  return owner == nullptr || owner->ended_by.load(std::memory_order_relaxed) != nullptr;
}

void ArrayCosts::Queried::destroy(bool mipmapped, CUdeviceptr array) noexcept {
  if (mipmapped) {
    real.cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(array));
  } else {
    real.cuArrayDestroy(reinterpret_cast<CUarray>(array));
  }
}

bool ArrayCosts::keep(const ContextRef &context, bool mipmapped, CUdeviceptr array) noexcept try {
  Guard guard(mutex_);
  std::erase_if(queried_, [](const Queried &one) { return one.is_gone(); });
  if (queried_.size() >= kMostQueried) {
    return false;
  }
  queried_.push_back({context, mipmapped, array});
  keeps_any_.store(true, std::memory_order_relaxed);
  return true;
} catch (...) {
  return false;
}

void ArrayCosts::destroy_queried(const Context &context) noexcept {
  const auto take = [&](Queried &taken) {
    Guard guard(mutex_);
    const auto found = std::find_if(queried_.begin(), queried_.end(),
                                    [&](const Queried &one) { return one.context.lock().get() == &context; });
    if (found == queried_.end()) {
      return false;
    }
    taken = std::move(*found);
    queried_.erase(found);
    keeps_any_.store(!queried_.empty(), std::memory_order_relaxed);
    return true;
  };
  const RelaxedCapture relaxed;
  for (Queried one{}; take(one);) {
    if (!one.is_gone()) {
      Queried::destroy(one.mipmapped, one.array);
    }
  }
}

void ArrayCosts::remember(const Key &key, std::optional<std::uint64_t> bytes) noexcept try {
  Guard guard(mutex_);
  if (known_.size() >= kMostShapes) {
    known_.clear();
  }
  known_.insert_or_assign(key, bytes);
} catch (...) {  // no host memory, so the shape will be queried again
}

bool ArrayCosts::recall(const Key &key, std::optional<std::uint64_t> &bytes) {
  Guard guard(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) {
    return false;
  }
  bytes = found->second;
  return true;
}

std::optional<std::uint64_t> ArrayCosts::of(const Contexts::Current &where, const ArrayShape &shape) noexcept {
  if (is_mapped_later(shape.descriptor)) {
    return 0;
  }
  const Key key = key_of(where.device, shape);
  std::optional<std::uint64_t> bytes;
  if (recall(key, bytes) || tells_.load(std::memory_order_acquire) != Tells::deferred || !can_ask(shape.mipmapped)) {
    return bytes;
  }
  CUresult error = CUDA_SUCCESS;
  bytes = ask_deferred(where.context, shape, error);
  // A shape that cannot be deferred now never can be; any other failure may be temporary.
  if (bytes.has_value() || error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_NOT_SUPPORTED) {
    remember(key, bytes);
  }
  return bytes;
}

std::optional<std::uint64_t> ArrayCosts::of(const Contexts::Current &where, const ArrayShape &shape,
                                            CUdeviceptr made) noexcept {
  const Tells tells = tells_.load(std::memory_order_acquire);
  if (is_mapped_later(shape.descriptor) || tells == Tells::none || !can_ask(shape.mipmapped)) {
    return std::nullopt;
  }
  if (tells != Tells::deferred) {
    CUresult error = CUDA_SUCCESS;
    const std::optional<std::uint64_t> bytes = ask(shape.mipmapped, made, error);
    if (bytes.has_value()) {
      tells_.store(Tells::all, std::memory_order_release);
      remember(key_of(where.device, shape), bytes);
    }
    if (error != CUDA_ERROR_INVALID_VALUE) {
      if (error == CUDA_ERROR_NOT_SUPPORTED) {
        tells_.store(Tells::none, std::memory_order_release);
      }
      return bytes;
    }
    tells_.store(Tells::deferred, std::memory_order_release);
  }
  return of(where, shape);
}

bool ArrayCosts::has_place() noexcept {
  Guard guard(mutex_);
  return queried_.size() < kMostQueried;
}

bool ArrayCosts::is_impossible(const Contexts::Current &where, const ArrayShape &shape) noexcept {
  if (!can_ask(shape.mipmapped) || !maps_later() || !has_place()) {
    return false;
  }
  constexpr unsigned kOfExtents = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
  ArrayShape plain = shape;
  plain.descriptor.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  plain.descriptor.NumChannels = 1;
  plain.descriptor.Flags &= kOfExtents;
  CUresult error = CUDA_SUCCESS;
  return !ask_deferred(where.context, plain, error).has_value() && error == CUDA_ERROR_INVALID_VALUE;
}

bool ArrayCosts::is_to_learn() const noexcept {
  return tells_.load(std::memory_order_acquire) == Tells::unknown && can_ask(false);
}

void ArrayCosts::probe(const Contexts::Current &where) noexcept {
  const RelaxedCapture relaxed;
  const ArrayShape one{{1, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}};
  CUarray made = nullptr;
  if (real.cuArray3DCreate_v2(&made, &one.descriptor) == CUDA_SUCCESS) {
    (void)of(where, one, number_of(made));
    real.cuArrayDestroy(made);
  }
}

}  // namespace ration::policy

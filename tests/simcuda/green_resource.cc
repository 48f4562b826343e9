#include "tests/simcuda/green_resource.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "implemented.h"
#include "tests/simcuda/device_attributes.h"

namespace simcuda {
namespace {

// cuda.h, green contexts: from compute capability 9.0 on a partition is 8 multiprocessors or a multiple of 8.
constexpr unsigned kPartition = 8;
constexpr unsigned kFinePartition = 2;  // with IGNORE_SM_COSCHEDULING
constexpr unsigned kSplitFlags =
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;

// The private part of CUdevResource.
struct Origin {
  CUdevice device;
  std::uint64_t split;  // the split that produced it; 0: none, it may still be split
};

struct Registry {
  std::mutex mutex;
  std::uint64_t splits = 0;
  std::unordered_map<const void *, std::unique_ptr<const ResourceDescriptor>> descriptors;
};

Registry &registry() {
  static auto *const once = new Registry;
  return *once;
}

CUdevResource resource_of(const Origin &origin, unsigned multiprocessors) {
  CUdevResource made = {};
  made.type = CU_DEV_RESOURCE_TYPE_SM;
  made.sm = {multiprocessors, kPartition, kPartition};
  std::memcpy(made._internal_padding, &origin, sizeof origin);
  return made;
}

Origin origin_of(const CUdevResource &resource) {
  Origin origin = {};
  std::memcpy(&origin, resource._internal_padding, sizeof origin);
  return origin;
}

unsigned multiprocessors_of(const Device &device) {
  return static_cast<unsigned>(attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

}  // namespace

const ResourceDescriptor *find_descriptor(CUdevResourceDesc handle) {
  const std::lock_guard<std::mutex> guard(registry().mutex);
  const auto found = registry().descriptors.find(handle);
  return found == registry().descriptors.end() ? nullptr : found->second.get();
}

CUresult tell_resource(CUdevice device, unsigned multiprocessors, CUdevResourceType type, CUdevResource *resource) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = resource_of({device, 0}, multiprocessors);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
  Device *found = nullptr;
  if (const CUresult error = device_of(device, &found); error != CUDA_SUCCESS) return error;
  return tell_resource(device, multiprocessors_of(*found), type, resource);
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type) {
  const Lock lock(driver().mutex);
  const Context *context = find_context(hCtx);
  if (context == nullptr || !context->alive) return CUDA_ERROR_INVALID_CONTEXT;
  return tell_resource(ordinal_of(*context->device),
                       context->green() ? context->multiprocessors : multiprocessors_of(*context->device), type,
                       resource);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
                                     CUdevResource *remaining, unsigned int useFlags, unsigned int minCount) {
  if (nbGroups == nullptr || input == nullptr || (useFlags & ~kSplitFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const Origin origin = origin_of(*input);
  if (origin.split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const bool fine = (useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  const unsigned step = fine ? kFinePartition : kPartition;
  if (minCount > input->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned size = std::max(1u, (minCount + step - 1) / step) * step;
  unsigned groups = input->sm.smCount / size;
  if (result != nullptr) groups = std::min(groups, *nbGroups);
  if (groups == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const std::lock_guard<std::mutex> guard(registry().mutex);
  const Origin part{origin.device, ++registry().splits};
  if (remaining != nullptr) {
    const unsigned rest = input->sm.smCount - groups * size;
    *remaining = rest != 0 ? resource_of(part, rest) : CUdevResource{};
  }
  if (result != nullptr) std::fill_n(result, groups, resource_of(part, size));
  *nbGroups = groups;
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources) {
  if (phDesc == nullptr || resources == nullptr || nbResources == 0) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<ResourceDescriptor>();
  const Origin first = origin_of(resources[0]);
  for (unsigned i = 0; i < nbResources; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const Origin origin = origin_of(resources[i]);
    // H100, H200, driver 580.159: the whole device and a part of it are accepted together.
    const bool with_whole = i != 0 && first.split == 0 && origin.split != 0;
    if (origin.device != first.device || (origin.split != first.split && !with_whole) ||
        (i != 0 && origin.split == 0)) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    if (!with_whole) made->multiprocessors += resources[i].sm.smCount;
  }
  made->device = first.device;
  *phDesc = reinterpret_cast<CUdevResourceDesc>(made.get());
  const std::lock_guard<std::mutex> guard(registry().mutex);
  registry().descriptors.emplace(made.get(), std::move(made));
  return CUDA_SUCCESS;
}

}  // namespace simcuda

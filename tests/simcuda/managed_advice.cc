// Advice about managed memory, and its queries: an answer requires that all pages of the range agree.
// Layer: managed.h. Threads: any.
#include <algorithm>
#include <cstring>
#include <vector>

#include "implemented.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/managed.h"

namespace simcuda {
namespace {

CUresult apply(const ManagedRange &range, CUmem_advise what, CUmemLocation location) {
  const int accessor = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
  switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      advise(range, [&](Advice &advice) { advice.read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      // H100, H200, driver 580.159: a device that does not exist is INVALID_VALUE here; for a prefetch INVALID_DEVICE.
      if (resolve(&location) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
      advise(range, [&](Advice &advice) { advice.preferred = location; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      advise(range, [&](Advice &advice) { advice.preferred.reset(); });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      if (location.type != CU_MEM_LOCATION_TYPE_DEVICE && location.type != CU_MEM_LOCATION_TYPE_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      if (const CUresult error = resolve(&location); error != CUDA_SUCCESS) return error;
      advise(range, [&](Advice &advice) {
        if (what == CU_MEM_ADVISE_SET_ACCESSED_BY) {
          advice.accessed_by.insert(accessor);
        } else {
          advice.accessed_by.erase(accessor);
        }
      });
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult advise_range(CUdeviceptr address, std::size_t bytes, CUmem_advise what, CUmemLocation location) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const ManagedRange range = managed_range(address, bytes);
  return range.advised == nullptr ? CUDA_ERROR_INVALID_VALUE : apply(range, what, location);
}

// The advice common to the whole range.
Advice agreed(const ManagedRange &range) {
  const auto &from = range.advised->from;
  auto part = std::prev(from.upper_bound(range.first));
  Advice common = part->second;
  const auto keep = [](std::optional<CUmemLocation> &mine, const std::optional<CUmemLocation> &other) {
    if (!mine || !other || mine->type != other->type || mine->id != other->id) mine.reset();
  };
  for (++part; part != from.end() && part->first < range.end; ++part) {
    const Advice &other = part->second;
    common.read_mostly = common.read_mostly && other.read_mostly;
    keep(common.preferred, other.preferred);
    keep(common.prefetched, other.prefetched);
    for (auto one = common.accessed_by.begin(); one != common.accessed_by.end();) {
      one = other.accessed_by.count(*one) != 0 ? std::next(one) : common.accessed_by.erase(one);
    }
  }
  return common;
}

// A location in the form of the older attributes.
int number_of(const std::optional<CUmemLocation> &location) {
  if (!location) return CU_DEVICE_INVALID;
  return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
}

int type_of(const std::optional<CUmemLocation> &location) {
  return location ? location->type : CU_MEM_LOCATION_TYPE_INVALID;
}

int id_of(const std::optional<CUmemLocation> &location) {
  return location ? location->id : 0;  // without a type the id is ignored
}

CUresult report(void *data, std::size_t bytes, CUmem_range_attribute attribute, const Advice &advice) {
  int value = 0;
  if (data == nullptr || bytes == 0 || bytes % sizeof value != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
    std::vector<int> list(advice.accessed_by.begin(), advice.accessed_by.end());
    list.resize(bytes / sizeof value, CU_DEVICE_INVALID);
    std::memcpy(data, list.data(), bytes);
    return CUDA_SUCCESS;
  }
  if (bytes != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      value = advice.read_mostly ? 1 : 0;
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      value = number_of(advice.preferred);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      value = number_of(advice.prefetched);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      value = type_of(advice.preferred);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      value = id_of(advice.preferred);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      value = type_of(advice.prefetched);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      value = id_of(advice.prefetched);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return advise_range(devPtr, count, advice, location_of(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  return advise_range(devPtr, count, advice, location);
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                size_t count) {
  return simcuda::cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
  if (data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const ManagedRange range = managed_range(devPtr, count);
  if (range.advised == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Advice advice = agreed(range);
  for (std::size_t i = 0; i < numAttributes; ++i) {
    if (const CUresult error = report(data[i], dataSizes[i], attributes[i], advice); error != CUDA_SUCCESS)
      return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace simcuda

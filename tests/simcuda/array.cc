#include "tests/simcuda/array.h"

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

constexpr unsigned kMappedLater = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

const void *handle_of(const ArrayMemory &memory) {
  return memory.mipmapped ? static_cast<const void *>(&memory) : memory.parts.front().get();
}

void forget(ArrayMemory &memory) {
  if (memory.bytes != 0) give_memory(*memory.context->device, memory.address, memory.bytes);
  for (const auto &part : memory.parts) driver().arrays.erase(part.get());
  driver().array_memory.erase(handle_of(memory));
}

}  // namespace

CUresult create_array_memory(Context &context, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped, unsigned levels,
                             ArrayMemory **memory) {
  Device &device = *context.device;
  if (const CUresult error = check_shape(device, shape, mipmapped); error != CUDA_SUCCESS) return error;
  auto made = std::make_shared<ArrayMemory>();
  made->context = context.root;
  made->shape = shape;
  made->mipmapped = mipmapped;
  made->id = driver().next_id++;
  lay_out(*made, levels);
  note("%llu", static_cast<unsigned long long>(made->needed));
  if ((shape.Flags & kMappedLater) == 0) {
    if (made->needed > device.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult error = take_memory(device, device.space, made->needed, &made->address);
    if (error != CUDA_SUCCESS) return error;
    made->bytes = made->needed;
  }
  for (const auto &part : made->parts) driver().arrays.emplace(part.get(), part.get());
  driver().array_memory.emplace(handle_of(*made), made);
  *memory = made.get();
  return CUDA_SUCCESS;
}

void destroy_array_memory(Lock &lock, ArrayMemory &memory) {
  const void *const handle = handle_of(memory);
  const std::uint64_t id = memory.id;
  drain(lock, *memory.context);
  const auto still = driver().array_memory.find(handle);
  if (still != driver().array_memory.end() && still->second->id == id) forget(*still->second);
}

void release_arrays_of(Context &context) {
  std::vector<std::shared_ptr<ArrayMemory>> going;
  for (const auto &[handle, memory] : driver().array_memory) {
    if (memory->context == &context) going.push_back(memory);
  }
  for (const auto &memory : going) forget(*memory);
}

Array *find_array(CUarray handle) {
  const auto found = driver().arrays.find(handle);
  return found == driver().arrays.end() ? nullptr : found->second;
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (pHandle == nullptr || pAllocateArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ArrayMemory *memory = nullptr;
  const CUresult error = create_array_memory(*context, *pAllocateArray, false, 1, &memory);
  if (error == CUDA_SUCCESS) *pHandle = reinterpret_cast<CUarray>(memory->parts.front().get());
  return error;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
  if (pAllocateArray == nullptr) return simcuda::cuArray3DCreate_v2(pHandle, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR flat = {pAllocateArray->Width,  pAllocateArray->Height,      0,
                                        pAllocateArray->Format, pAllocateArray->NumChannels, 0};
  return simcuda::cuArray3DCreate_v2(pHandle, &flat);
}

CUresult cuArrayDestroy(CUarray hArray) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  const Array *array = find_array(hArray);
  if (array == nullptr || array->view) return CUDA_ERROR_INVALID_HANDLE;
  destroy_array_memory(lock, *array->memory);
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pArrayDescriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array *array = find_array(hArray);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *pArrayDescriptor = array->shape;
  return CUDA_SUCCESS;
}

// The 2D call cannot describe an array that has a depth.
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
  if (pArrayDescriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  if (const CUresult error = simcuda::cuArray3DGetDescriptor_v2(&shape, hArray); error != CUDA_SUCCESS) return error;
  if (shape.Depth != 0) return CUDA_ERROR_INVALID_VALUE;
  *pArrayDescriptor = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pPlaneArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array *array = find_array(hArray);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto &parts = array->memory->parts;
  if (array->view || planeIdx >= parts.size() - 1) return CUDA_ERROR_INVALID_VALUE;
  *pPlaneArray = reinterpret_cast<CUarray>(parts[planeIdx + 1].get());
  return CUDA_SUCCESS;
}

}  // namespace simcuda

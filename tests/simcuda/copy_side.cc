#include "tests/simcuda/copy_side.h"

#include <cstring>

#include "tests/simcuda/array.h"

namespace simcuda {
namespace {

bool inside(std::uint64_t first, std::uint64_t count, std::uint64_t all) {
  return first <= all && count <= all - first;
}

CUresult locate_in_array(const Side &side, const Box &box, Rows *rows) {
  const Array *array = find_array(side.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array->memory->bytes == 0 || !inside(side.x, box.width, array->row_bytes) ||
      !inside(side.y, box.height, array->rows) || !inside(side.z, box.depth, array->slices)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t first =
      array->memory->address + array->offset + side.z * array->slice_bytes + side.y * array->pitch + side.x;
  *rows = {{Place::Kind::kDevice, view_of(first)}, array->pitch, array->slice_bytes};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult locate(const Context &context, Use use, Reach reach, const Side &side, const Box &box, Rows *rows) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return locate_in_array(side, box, rows);
  if ((box.height > 1 || box.depth > 1) && side.pitch < side.x + box.width) return CUDA_ERROR_INVALID_VALUE;
  if (box.depth > 1 && side.height < side.y + box.height) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t base =
      side.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(side.host) : side.device;
  const std::uint64_t slice = side.pitch * side.height;
  const std::uint64_t first = base + side.z * slice + side.y * side.pitch + side.x;
  const std::uint64_t bytes = (box.depth - 1) * slice + (box.height - 1) * side.pitch + box.width;
  rows->place = place(context, use, reach, first, side.type != CU_MEMORYTYPE_DEVICE, bytes);
  rows->pitch = side.pitch;
  rows->slice = slice;
  return rows->place.kind == Place::Kind::kNowhere ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

Place place(const Context &context, Use use, Reach reach, std::uint64_t address, bool any, std::size_t bytes) {
  return any ? any_place(context, use, reach, address, bytes) : device_place(context, use, reach, address, bytes);
}

Until until(Form form, const Place &target, const Place &source) {
  const bool waits = form == Form::kSynchronous
                         ? target.waits() || source.waits()
                         : target.kind == Place::Kind::kPageable || source.kind == Place::Kind::kPageable;
  return waits ? Until::kDone : Until::kQueued;
}

CUresult plan_box(const Context &context, Reach reach, const Side &to, const Side &from, const Box &box, Form form,
                  BoxCopy *copy) {
  Rows target, source;
  if (const CUresult error = locate(context, Use::kRead, reach, from, box, &source); error != CUDA_SUCCESS)
    return error;
  if (const CUresult error = locate(context, Use::kWrite, reach, to, box, &target); error != CUDA_SUCCESS) return error;
  copy->until = until(form, target.place, source.place);
  copy->work = {CU_GRAPH_NODE_TYPE_MEMCPY, [=] {
                  for (std::size_t slice = 0; slice < box.depth; ++slice) {
                    for (std::size_t row = 0; row < box.height; ++row) {
                      std::memmove(target.place.bytes + slice * target.slice + row * target.pitch,
                                   source.place.bytes + slice * source.slice + row * source.pitch, box.width);
                    }
                  }
                }};
  return CUDA_SUCCESS;
}

CUresult copy_box(Lock &lock, const Context &context, const Side &to, const Side &from, const Box &box, CUstream stream,
                  Form form) {
  std::shared_ptr<Stream> queue;
  if (const CUresult error = find_stream(lock, stream, &queue); error != CUDA_SUCCESS) return error;
  BoxCopy copy;
  if (const CUresult error = plan_box(context, reach_of(*queue), to, from, box, form, &copy); error != CUDA_SUCCESS) {
    return error;
  }
  return run(lock, queue, form, copy.until, std::move(copy.work));
}

}  // namespace simcuda

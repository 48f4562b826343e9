// One side of a copy of rows: memory with a pitch, or an array. Layer: place.h, array.h.
// Threads: under Driver::mutex; the memory that it returns stays mapped forever.
#pragma once
#include "tests/simcuda/place.h"
#include "tests/simcuda/stream.h"

namespace simcuda {

struct Box {
  std::size_t width, height, depth;  // bytes, rows, slices; none is 0
};

struct Side {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  const void *host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::size_t x = 0, y = 0, z = 0;  // bytes, rows, slices
  std::size_t pitch = 0, height = 0;
};

// The address of the box, and the distances between rows and between slices.
struct Rows {
  Place place;
  std::size_t pitch = 0, slice = 0;
};

// INVALID_VALUE if the box is not entirely inside; INVALID_HANDLE if there is no such array.
CUresult locate(const Context &context, Use use, Reach reach, const Side &side, const Box &box, Rows *rows);

// If `any`, also accepts the program's own memory.
Place place(const Context &context, Use use, Reach reach, std::uint64_t address, bool any, std::size_t bytes);

// When a copy returns to its caller ("API synchronization behavior" of the CUDA manuals).
Until until(Form form, const Place &target, const Place &source);

// The work of a copy (none if the box is empty), and when it returns to its caller.
struct BoxCopy {
  Work work;
  Until until = Until::kQueued;
};
CUresult plan_box(const Context &context, Reach reach, const Side &to, const Side &from, const Box &box, Form form,
                  BoxCopy *copy);
CUresult plan_3d(const Context &context, Reach reach, const CUDA_MEMCPY3D &request, Form form, BoxCopy *copy);
CUresult copy_box(Lock &lock, const Context &context, const Side &to, const Side &from, const Box &box, CUstream stream,
                  Form form);

}  // namespace simcuda

// CUDA arrays of the fake driver; their handles are its blocks. The test decides how much memory the arrays need, and
// for which ones the driver reports it. Their functions are put into driver::real after a FakeDriver. Threads: one.
#pragma once

#include <map>

#include "policy/physical/array_costs.h"
#include "unit/policy/fake_call.h"
#include "unit/policy/program.h"

namespace ration::test {

class FakeArrays {
 public:
  enum class Tells { kNothing, kDeferred, kAll };

  explicit FakeArrays(Tells whose) : tells(whose) {
    arrays = this;
    fill(
        driver::real.cuArray3DCreate_v2, +[](CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
          return call("cuArray3DCreate_v2", [&] { return arrays->make(array, *shape); });
        });
    fill(
        driver::real.cuMipmappedArrayCreate,
        +[](CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned) {
          return call("cuMipmappedArrayCreate", [&] { return arrays->make(array, *shape); });
        });
    fill(
        driver::real.cuArrayDestroy,
        +[](CUarray array) { return call("cuArrayDestroy", [&] { return arrays->end(array); }); });
    fill(
        driver::real.cuMipmappedArrayDestroy,
        +[](CUmipmappedArray array) { return call("cuMipmappedArrayDestroy", [&] { return arrays->end(array); }); });
    fill(
        driver::real.cuArrayGetMemoryRequirements,
        +[](CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device) {
          return call("cuArrayGetMemoryRequirements", [&] { return arrays->report(needs, array, device); });
        });
    fill(
        driver::real.cuMipmappedArrayGetMemoryRequirements,
        +[](CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUmipmappedArray array, CUdevice device) {
          return call("cuMipmappedArrayGetMemoryRequirements", [&] { return arrays->report(needs, array, device); });
        });
  }

  Tells tells;
  bool honours_deferral = true;
  // The bytes that an array of this shape needs.
  std::function<std::uint64_t(const CUDA_ARRAY3D_DESCRIPTOR &)> needs = [](const CUDA_ARRAY3D_DESCRIPTOR &shape) {
    return std::uint64_t{shape.Width} * std::max<std::uint64_t>(shape.Height, 1);
  };
  std::uint64_t most_at_once = 0;  // the peak number of bytes in use on the device

  std::size_t live() const { return live_.size(); }

 private:
  static inline FakeArrays *arrays = nullptr;

  template <class Handle>
  CUresult make(Handle *handle, const CUDA_ARRAY3D_DESCRIPTOR &shape) {
    CUdeviceptr address = next_deferred_++;
    if (honours_deferral && (shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
      live_[address] = shape;
    } else if (const CUresult result = FakeDriver::fake->allocate(&address, needs(shape)); result != CUDA_SUCCESS) {
      return result;
    }
    live_[address] = shape;
    most_at_once = std::max(most_at_once, FakeDriver::fake->used(0));
    *handle = reinterpret_cast<Handle>(address);
    return CUDA_SUCCESS;
  }
  template <class Handle>
  CUresult end(Handle handle) {
    const auto address = reinterpret_cast<CUdeviceptr>(handle);
    if (live_.erase(address) == 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    return address < next_deferred_ ? CUDA_SUCCESS : FakeDriver::fake->free(address);  // the array may be gone by now
  }
  template <class Handle>
  CUresult report(CUDA_ARRAY_MEMORY_REQUIREMENTS *reported, Handle handle, CUdevice device) {
    const auto found = live_.find(reinterpret_cast<CUdeviceptr>(handle));
    if (tells == Tells::kNothing) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const bool deferred = found != live_.end() && (found->second.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
    if (found == live_.end() || device < FakeDriver::kFirstHandle || (tells == Tells::kDeferred && !deferred)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    reported->size = needs(found->second);
    return CUDA_SUCCESS;
  }

  std::map<CUdeviceptr, CUDA_ARRAY3D_DESCRIPTOR> live_;
  CUdeviceptr next_deferred_ = 0x100;
};

// A shape for which the upper bound is `mib` MiB: rows of 1,024 bytes in whole blocks of 256 rows.
inline policy::ArrayShape shape_of(std::uint64_t mib, unsigned flags = 0) {
  return {{1024, static_cast<std::size_t>(mib) * 1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, flags}};
}

// The work of the hooks of cuArray3DCreate_v2 and cuArrayDestroy.
struct ArrayProgram {
  explicit ArrayProgram(Program &its_program) : program(its_program) {}
  CUdeviceptr create(const policy::ArrayShape &shape) {
    CUdeviceptr handle = kUntouched;
    const auto act = [&](policy::Obtained &got) {
      CUarray made = nullptr;
      const CUresult result = driver::real.cuArray3DCreate_v2(&made, &shape.descriptor);
      got.address = reinterpret_cast<CUdeviceptr>(made);
      return result;
    };
    const auto undo = [](CUdeviceptr made) { return driver::real.cuArrayDestroy(reinterpret_cast<CUarray>(made)); };
    last = program.parts.array_memory.create({"cuArray3DCreate_v2", 0, 0, nullptr, false, events::Kind::array}, shape,
                                             act, undo, &handle);
    return handle;
  }
  CUresult destroy(CUdeviceptr handle) {
    return program.parts.array_memory.destroy(
        "cuArrayDestroy", handle, [&] { return driver::real.cuArrayDestroy(reinterpret_cast<CUarray>(handle)); });
  }
  Program &program;
  CUresult last = CUDA_SUCCESS;
};

}  // namespace ration::test

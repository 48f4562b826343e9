// Launches: the registered host function runs once per launch, in stream order, on copies of the arguments.
// Layer: code.h. Threads: any.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "implemented.h"
#include "tests/simcuda/code.h"

namespace simcuda {
namespace {

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

using Arguments = std::vector<std::vector<std::byte>>;

bool acceptable(const Shape &shape) {
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.block[i] == 0 || shape.block[i] > 1024) return false;
    threads *= shape.block[i];
  }
  return threads <= 1024;
}

// `extra` is a list of tag, value pairs that ends with CU_LAUNCH_PARAM_END: a packed buffer and a pointer to its size.
CUresult buffer_of(void **extra, const std::byte **buffer, std::size_t *bytes) {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = static_cast<const std::byte *>(extra[1]);
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      *bytes = *static_cast<const std::size_t *>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return *buffer == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult copy_arguments(const Kernel &kernel, void **params, void **extra, Arguments *arguments) {
  const auto &sizes = kernel.param_bytes;
  if (sizes.empty()) return CUDA_SUCCESS;
  if ((params == nullptr) == (extra == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::byte *buffer = nullptr;
  std::size_t buffer_bytes = 0;
  if (extra != nullptr) {
    if (const CUresult error = buffer_of(extra, &buffer, &buffer_bytes); error != CUDA_SUCCESS) return error;
  }
  const auto offsets = offsets_of(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (buffer != nullptr && offsets[i] + sizes[i] > buffer_bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto *from = buffer != nullptr ? buffer + offsets[i] : static_cast<const std::byte *>(params[i]);
    if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    arguments->emplace_back(from, from + sizes[i]);
  }
  return CUDA_SUCCESS;
}

// With its own copy of the arguments: a graph launches it again.
void run_kernel(const Kernel &kernel, const Shape &shape, Arguments arguments) {
  std::vector<void *> pointers;
  for (auto &argument : arguments) pointers.push_back(argument.data());
  simcuda_launch one = {};
  std::copy_n(shape.grid, 3, one.grid);
  std::copy_n(shape.block, 3, one.block);
  one.shared_bytes = shape.shared_bytes;
  one.params = pointers.data();
  kernel.run(&one);
}

CUresult launch(CUfunction handle, const Shape &shape, CUstream stream, void **params, void **extra) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Function *function = find_function(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!acceptable(shape)) return CUDA_ERROR_INVALID_VALUE;
  auto arguments = std::make_shared<Arguments>();
  const Kernel &kernel = *function->kernel;  // never destroyed, unlike the function
  if (const CUresult error = copy_arguments(kernel, params, extra, arguments.get()); error != CUDA_SUCCESS)
    return error;
  if (const CUresult error = make_globals(*function->image, *context->root); error != CUDA_SUCCESS) return error;
  if (const CUresult error = take_for_launch(*context->root); error != CUDA_SUCCESS) return error;
  return run(lock, stream, Form::kAsynchronous, Until::kQueued,
             {CU_GRAPH_NODE_TYPE_KERNEL, [&kernel, shape, arguments] { run_kernel(kernel, shape, *arguments); }});
}

}  // namespace

std::vector<std::size_t> offsets_of(const std::vector<std::size_t> &param_bytes) {
  std::vector<std::size_t> offsets;
  std::size_t end = 0;
  for (const std::size_t bytes : param_bytes) {
    const std::size_t alignment = std::min<std::size_t>(16, std::bit_floor(std::max<std::size_t>(bytes, 1)));
    offsets.push_back((end + alignment - 1) / alignment * alignment);
    end = offsets.back() + bytes;
  }
  return offsets;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
  const Shape shape{{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};
  return launch(f, shape, hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) {
  const Shape shape{{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};
  return launch(f, shape, hStream, kernelParams, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes};
  return launch(f, shape, config->hStream, kernelParams, extra);
}

}  // namespace simcuda

// What does an array take of the device, next to what its requirements say where it is mapped later? Does destroying an
// array that is mapped later wait for running work?
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

struct Shape {
  const char *name;
  std::size_t width, height, depth;
  CUarray_format format;
  unsigned channels, flags;
};

constexpr Shape kShapes[] = {
    {"1D_1000_float", 1000, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
    {"2D_64x64_float", 64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0},
    {"2D_1000x1001_float", 1000, 1001, 0, CU_AD_FORMAT_FLOAT, 1, 0},
    {"2D_1024x1024_float4", 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0},
    {"2D_4096x4096_byte", 4096, 4096, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},
    {"2D_4096x4096_float", 4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0},
    {"3D_100x100x33_float", 100, 100, 33, CU_AD_FORMAT_FLOAT, 1, 0},
    {"3D_256x256x256_float", 256, 256, 256, CU_AD_FORMAT_FLOAT, 1, 0},
    {"layered_300x100x70_float", 300, 100, 70, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},
    {"2D_1920x1080_surface", 1920, 1080, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_SURFACE_LDST},
};

CUDA_ARRAY3D_DESCRIPTOR described(const Shape &shape, unsigned more_flags = 0) {
  return {shape.width, shape.height, shape.depth, shape.format, shape.channels, shape.flags | more_flags};
}

// The mean of several, since the driver takes memory in chunks of its own.
double device_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, int count) {
  std::vector<CUarray> arrays(static_cast<std::size_t>(count));
  const std::size_t before = free_bytes();
  for (CUarray &array : arrays) must(cuArray3DCreate(&array, &shape));
  const std::size_t after = free_bytes();
  for (const CUarray array : arrays) must(cuArrayDestroy(array));
  return static_cast<double>(before - after) / count;
}

void requirements(Test &test) {
  for (const Shape &shape : kShapes) {
    const CUDA_ARRAY3D_DESCRIPTOR plain = described(shape), deferred = described(shape, CUDA_ARRAY3D_DEFERRED_MAPPING);
    test.number(std::string("device_bytes_") + shape.name, device_bytes(plain, 16));
    CUarray array = nullptr;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed = {};
    must(cuArray3DCreate(&array, &plain));
    const CUresult of_plain = cuArrayGetMemoryRequirements(&needed, array, 0);
    must(cuArrayDestroy(array));
    if (of_plain != CUDA_SUCCESS) test.code(std::string("requirement_code_") + shape.name, of_plain);
    if (of_plain == CUDA_SUCCESS) test.number(std::string("requirement_bytes_") + shape.name, needed.size);
    const CUresult created = cuArray3DCreate(&array, &deferred);
    if (created != CUDA_SUCCESS) {
      test.code(std::string("deferred_code_") + shape.name, created);
      continue;
    }
    needed = {};
    const CUresult of_deferred = cuArrayGetMemoryRequirements(&needed, array, 0);
    if (of_deferred != CUDA_SUCCESS) test.code(std::string("deferred_requirement_code_") + shape.name, of_deferred);
    test.number(std::string("deferred_requirement_bytes_") + shape.name, needed.size);
    test.number(std::string("deferred_requirement_alignment_") + shape.name, needed.alignment);
    must(cuArrayDestroy(array));
  }
  test.note(
      "cuMemGetInfo delta of one of 16 arrays, and what cuArrayGetMemoryRequirements says without and with mapping "
      "later.");
}

void destroying(Test &test) {
  const Kernels kernels = load_kernels();
  Cleanup cleanup;
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  for (const unsigned flags : {0u, static_cast<unsigned>(CUDA_ARRAY3D_DEFERRED_MAPPING)}) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = described(kShapes[2], flags);
    CUarray array = nullptr;
    must(cuArray3DCreate(&array, &shape));
    const Spin spin(kernels, stream, 150);
    const std::string name = flags == 0 ? "plain" : "deferred";
    test.number("destroy_us_" + name, microseconds([&] { must(cuArrayDestroy(array)); }));
    test.yes("destroy_waited_" + name, !spin.running());
  }
  test.note("cuArrayDestroy while a kernel runs in a non-blocking stream.");
}

}  // namespace

int main() {
  return question::run({{"requirements", requirements}, {"destroying", destroying}});
}

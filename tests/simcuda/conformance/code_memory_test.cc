// What code and the limits of a context take of the device, and when. The sizes are of 580.105 on an H100; where a
// driver other than the simulator is asked, only directions are checked.
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kVariable = 8 * kMiB;

void nothing(const simcuda_launch *) {}

bool has_code() {
  if (!simulator()) return false;
  static const int variable = simulator().register_global("held", kVariable);
  static const int kernel = simulator().register_kernel("nothing", nothing, nullptr, 0);
  return variable == 0 && kernel == 0;
}

// Of all variables that tests of this process have registered.
std::size_t bytes_of_a_module() {
  const std::size_t before = free_bytes();
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  const std::size_t bytes = before - free_bytes();
  REQUIRE(cuModuleUnload(module) == CUDA_SUCCESS);
  REQUIRE(free_bytes() == before);
  return bytes;
}

struct Library {
  Library() { REQUIRE(cuLibraryLoadData(&handle, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS); }
  CUlibrary handle = nullptr;
};

TEST_CASE("a module's variables take memory when it is loaded") {
  if (!has_code()) return;
  const CurrentContext context;
  CHECK(bytes_of_a_module() >= kVariable);
}

TEST_CASE("a library's variables take memory at its first use, once, and until it is unloaded") {
  if (!has_code()) return;
  const CurrentContext context;
  const std::size_t bytes = bytes_of_a_module();
  const std::size_t before = free_bytes();
  const Library library;
  CUkernel kernel = nullptr;
  REQUIRE(cuLibraryGetKernel(&kernel, library.handle, "nothing") == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CUlibrary owner = nullptr;
  CHECK(cuKernelGetLibrary(&owner, kernel) == CUDA_SUCCESS);
  CHECK(owner == library.handle);
  CHECK(free_bytes() == before);
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  SECTION("of a kernel's function") {
    REQUIRE(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
  }
  SECTION("of its module") {
    REQUIRE(cuLibraryGetModule(&module, library.handle) == CUDA_SUCCESS);
  }
  SECTION("of a variable") {
    REQUIRE(cuLibraryGetGlobal(&address, nullptr, library.handle, "held") == CUDA_SUCCESS);
  }
  SECTION("of a kernel that is launched") {
    REQUIRE(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
            CUDA_SUCCESS);
  }
  CHECK(free_bytes() == before - bytes);
  CHECK(cuLibraryGetModule(&module, library.handle) == CUDA_SUCCESS);
  CHECK(free_bytes() == before - bytes);
  CHECK(cuLibraryUnload(library.handle) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a larger stack takes memory at once, and the smaller one gives it back", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  std::size_t had = 0;
  REQUIRE(cuCtxGetLimit(&had, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, had + 1024) == CUDA_SUCCESS);
  CHECK(before - free_bytes() >= 64 * kMiB);
  REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, had) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("heap and buffer of printf take memory when code comes, and until their context ends") {
  if (!has_code()) return;
  const CurrentContext outer;
  const std::size_t at_first = free_bytes();
  {
    const CurrentContext context;
    const std::size_t bytes = bytes_of_a_module();
    const std::size_t before = free_bytes();
    REQUIRE(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 17 * kMiB) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 40 * kMiB) == CUDA_SUCCESS);
    CHECK(free_bytes() == before);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&function, module, "nothing") == CUDA_SUCCESS);
    CHECK(free_bytes() == before - bytes - 16 * kMiB);
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(free_bytes() == before - bytes - 48 * kMiB);
    REQUIRE(cuModuleUnload(module) == CUDA_SUCCESS);
    CHECK(free_bytes() == before - 48 * kMiB);
  }
  CHECK(free_bytes() == at_first);
}

}  // namespace
}  // namespace simcuda::conformance

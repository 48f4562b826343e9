// What does a driver take of the device on its own account, and at which call: heaps and stacks of kernels, global
// variables of modules and libraries, local memory, contexts?
#include <string>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

// hold(to): a kernel. big: 256 MiB of global memory. deep: a kernel with 64 KiB of local memory a thread. heap: a
// kernel that allocates from the device's heap.
constexpr char kBig[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b8 big[268435456];
.visible .entry hold(.param .u64 to) { ret; }
)";
constexpr char kDeep[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry deep(.param .u64 to) {
  .local .align 8 .b8 depot[65536];
  .reg .b64 %to, %at, %value;
  ld.param.u64 %to, [to];
  mov.u64 %at, depot;
  and.b64 %value, %to, 65528;
  add.u64 %at, %at, %value;
  st.local.u64 [%at], %to;
  ld.global.u64 %value, [%to];
  and.b64 %value, %value, 65528;
  mov.u64 %at, depot;
  add.u64 %at, %at, %value;
  ld.local.u64 %value, [%at];
  st.global.u64 [%to], %value;
  ret;
}
)";
constexpr char kHeap[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 result) malloc (.param .b64 bytes);
.visible .entry heap(.param .u64 to) {
  .reg .b64 %to, %block;
  ld.param.u64 %to, [to];
  { .param .b64 bytes; .param .b64 result;
    st.param.b64 [bytes], 1024;
    call.uni (result), malloc, (bytes);
    ld.param.b64 %block, [result]; }
  st.global.u64 [%to], %block;
  ret;
}
)";

class Steps {
 public:
  explicit Steps(Test &test) : test_(test), free_(free_bytes()) {}
  void after(const std::string &step) {
    must(cuCtxSynchronize());
    const std::size_t now = free_bytes();
    test_.number("bytes_of_" + step, static_cast<long long>(free_) - static_cast<long long>(now));
    free_ = now;
  }

 private:
  Test &test_;
  std::size_t free_;
};

void launch(CUfunction function, CUdeviceptr to) {
  void *arguments[] = {&to};
  must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  must(cuCtxSynchronize());
}

CUfunction function_of(CUmodule module, const char *name) {
  CUfunction function = nullptr;
  must(cuModuleGetFunction(&function, module, name));
  return function;
}

void modules(Test &test) {
  CUdeviceptr block = 0, address = 0;
  std::size_t bytes = 0;
  must(cuMemAlloc(&block, kMiB));
  Steps steps(test);
  CUmodule module = nullptr, second = nullptr;
  must(cuModuleLoadData(&module, kBig));
  steps.after("load");
  CUfunction hold = function_of(module, "hold");
  steps.after("function");
  must(cuModuleGetGlobal(&address, &bytes, module, "big"));
  steps.after("global");
  launch(hold, block);
  steps.after("launch");
  must(cuModuleLoadData(&second, kBig));
  steps.after("second_load");
  must(cuModuleUnload(second));
  steps.after("second_unload");
  must(cuModuleUnload(module));
  steps.after("unload");
  must(cuMemFree(block));
  test.note("A module with a global variable of 256 MiB.");
}

void libraries(Test &test) {
  CUdeviceptr block = 0, address = 0;
  std::size_t bytes = 0;
  must(cuMemAlloc(&block, kMiB));
  Steps steps(test);
  CUlibrary library = nullptr;
  must(cuLibraryLoadData(&library, kBig, nullptr, nullptr, 0, nullptr, nullptr, 0));
  steps.after("load");
  CUkernel kernel = nullptr;
  must(cuLibraryGetKernel(&kernel, library, "hold"));
  steps.after("kernel");
  CUfunction function = nullptr;
  must(cuKernelGetFunction(&function, kernel));
  steps.after("function_of_the_kernel");
  CUmodule module = nullptr;
  must(cuLibraryGetModule(&module, library));
  steps.after("module");
  must(cuLibraryGetGlobal(&address, &bytes, library, "big"));
  steps.after("global");
  launch(function, block);
  steps.after("launch");
  must(cuLibraryUnload(library));
  steps.after("unload");
  CUlibrary lazy = nullptr;
  must(cuLibraryLoadData(&lazy, kBig, nullptr, nullptr, 0, nullptr, nullptr, 0));
  must(cuLibraryGetKernel(&kernel, lazy, "hold"));
  steps.after("load_again");
  launch(reinterpret_cast<CUfunction>(kernel), block);
  steps.after("launch_by_its_kernel");
  must(cuLibraryUnload(lazy));
  steps.after("unload_again");
  must(cuMemFree(block));
  test.note("A library with a global variable of 256 MiB.");
}

void local_memory(Test &test) {
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kMiB));
  Steps steps(test);
  CUmodule module = nullptr;
  must(cuModuleLoadData(&module, kDeep));
  steps.after("load");
  CUfunction deep = function_of(module, "deep");
  steps.after("function");
  launch(deep, block);
  steps.after("launch");
  must(cuModuleUnload(module));
  steps.after("unload");
  must(cuMemFree(block));
  test.note("A kernel with 64 KiB of local memory a thread.");
}

void limits(Test &test) {
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kMiB));
  Steps steps(test);
  std::size_t had = 0;
  must(cuCtxGetLimit(&had, CU_LIMIT_STACK_SIZE));
  test.number("stack_limit", had);
  test.code("stack_code", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 32 * kKiB));
  steps.after("stack_of_32_KiB");
  const Kernels kernels = load_kernels();
  must(fill(kernels, block, 64, 1, nullptr));
  steps.after("launch_with_that_stack");
  test.code("stack_back_code", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, had));
  steps.after("stack_back");
  must(fill(kernels, block, 64, 1, nullptr));
  steps.after("launch_with_the_first_stack");
  must(cuCtxGetLimit(&had, CU_LIMIT_PRINTF_FIFO_SIZE));
  test.number("printf_limit", had);
  test.code("printf_code", cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 64 * kMiB));
  steps.after("printf_of_64_MiB");
  must(cuCtxGetLimit(&had, CU_LIMIT_MALLOC_HEAP_SIZE));
  test.number("heap_limit", had);
  test.code("heap_code", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * kMiB));
  steps.after("heap_of_256_MiB");
  CUmodule module = nullptr;
  must(cuModuleLoadData(&module, kHeap));
  steps.after("load_of_a_kernel_with_malloc");
  CUfunction heap = function_of(module, "heap");
  steps.after("function_of_it");
  launch(heap, block);
  steps.after("launch_of_it");
  test.code("heap_after_its_use_code", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * kMiB));
  steps.after("heap_of_512_MiB_after_its_use");
  must(cuModuleUnload(module));
  steps.after("unload");
  must(cuMemFree(block));
  test.note("cuCtxSetLimit, and the launches after it.");
}

void contexts(Test &test) {
  CUcontext primary = nullptr, second = nullptr;
  must(cuCtxGetCurrent(&primary));
  Steps steps(test);
  must(cuCtxCreate(&second, nullptr, 0, 0));
  steps.after("context");
  test.code("stack_code", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 32 * kKiB));
  steps.after("its_stack_of_32_KiB");
  must(cuCtxDestroy(second));
  must(cuCtxSetCurrent(primary));
  steps.after("end_of_the_context");
  CUdevResource all = {}, half = {};
  must(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 1;
  must(cuDevSmResourceSplitByCount(&half, &groups, &all, nullptr, 0, all.sm.smCount / 2));
  CUdevResourceDesc description = nullptr;
  must(cuDevResourceGenerateDesc(&description, &half, 1));
  CUgreenCtx green = nullptr;
  must(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  steps.after("green_context");
  CUstream stream = nullptr;
  must(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  steps.after("its_stream");
  must(cuStreamDestroy(stream));
  must(cuGreenCtxDestroy(green));
  steps.after("end_of_the_green_context");
  test.note("A second context, and a green one, beside the primary one.");
}

}  // namespace

int main() {
  return question::run({{"modules", modules},
                        {"libraries", libraries},
                        {"local_memory", local_memory},
                        {"limits", limits},
                        {"contexts", contexts}});
}

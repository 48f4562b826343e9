// What does a context cost, a second one, a module, a stream, an event? Can the work of one context reach memory of
// another one of the same device without peer access, and for whose work does a free wait?
#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

CUcontext current() {
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context));
  return context;
}

CUcontext new_context() {
  CUcontext context = nullptr;
  must(cuCtxCreate(&context, nullptr, 0, 0));
  return context;
}

// Takes one thing after the other, and lets the parent look at the device's free memory after each.
void take() {
  std::vector<CUstream> streams(100);
  std::vector<CUevent> events(1000);
  const auto taken = [](const char *what) {
    must(cuCtxSynchronize());
    send(kParent, what);
    receive(kParent);
  };
  taken("primary_context");
  load_kernels();
  taken("module");
  load_kernels();
  taken("same_module_again");
  for (CUstream &stream : streams) must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  taken("100_streams");
  for (CUevent &event : events) must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  taken("1000_events");
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, 1));
  taken("1_byte");
  void *pinned = nullptr;
  must(cuMemAllocHost(&pinned, 64 * kMiB));
  taken("64_MiB_of_pinned_memory");
  cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * kMiB);  // taken at once, at a first use, or refused
  taken("limit_of_256_MiB_for_the_heap");
  const CUcontext second = new_context();
  taken("second_context");
  new_context();
  taken("third_context");
  must(cuCtxDestroy(second));
  taken("end_of_the_second_context");
}

void costs(Test &test) {
  std::size_t last = free_bytes();
  Child child({"take"});
  for (Message message = receive(child.socket()); !message.text.empty(); message = receive(child.socket())) {
    if (message.text.find("stopped") == 0) return test.note("The second process " + message.text);
    const std::size_t now = free_bytes();
    test.number("bytes_of_" + message.text, last - now);
    last = now;
    send(child.socket(), "go on");
  }
  child.end(false);
  test.number("bytes_back_at_the_end", free_bytes() - last);
  test.note("cuMemGetInfo deltas that one process sees while another one takes one thing after the other.");
}

void reach(Test &test) {
  const CUcontext primary = current();
  Cleanup cleanup;
  CUdeviceptr block = 0, own = 0;
  must(cuMemAlloc(&block, kMiB));
  must(cuMemsetD32(block, 5, kMiB / 4));
  must(cuCtxSynchronize());
  const CUcontext other = new_context();
  cleanup.add([=] {
    cuCtxDestroy(other);
    cuCtxSetCurrent(primary);
    cuMemFree(block);
  });
  const Kernels kernels = load_kernels();
  must(cuMemAlloc(&own, kMiB));
  unsigned word = 0;
  test.code("copy_to_the_host_code", cuMemcpyDtoH(&word, block, 4));
  test.yes("copy_to_the_host_is_right", word == 5);
  test.code("copy_on_the_device_code", cuMemcpyDtoD(own, block, kMiB));
  test.code("fill_code", cuMemsetD32(block, 6, 1));
  test.code("launch_code", copy(kernels, own, block + 4, kMiB / 4 - 1, CU_STREAM_LEGACY));
  test.code("kernel_reads_code", cuCtxSynchronize());
  test.code("launch_to_write_code", fill(kernels, block, 4, 40, CU_STREAM_LEGACY));
  test.code("kernel_writes_code", cuCtxSynchronize());
  word = 0;
  cuMemcpyDtoH(&word, own, 4);
  test.yes("kernel_read_the_bytes", word == 5);
  CUcontext owner = nullptr;
  must(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block));
  test.yes("the_block_is_the_first_contexts", owner == primary);
  must(cuCtxSetCurrent(primary));
  must(cuMemcpyDtoH(&word, block, 4));
  test.yes("kernel_wrote_the_bytes", word == 40);
  test.code("enable_peer_access_code", cuCtxEnablePeerAccess(other, 0));
  test.note("Work of a second context on a block of the first one, with no peer access.");
}

// Eight cases: the context that made the block, the one whose kernel runs, and the one that is current at the free.
void free_across(Test &test) {
  const CUcontext primary = current();
  Cleanup cleanup;
  const CUcontext contexts[2] = {primary, new_context()};
  cleanup.add([&] {
    cuCtxDestroy(contexts[1]);
    cuCtxSetCurrent(primary);
  });
  Kernels kernels[2] = {};
  CUstream streams[2] = {};
  for (int i = 0; i < 2; ++i) {
    must(cuCtxSetCurrent(contexts[i]));
    kernels[i] = load_kernels();
    must(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
  }
  for (const std::size_t bytes : {4 * kKiB, 64 * kMiB}) {
    for (int which = 0; which < 8; ++which) {
      const int maker = which & 1, busy = which >> 1 & 1, freeing = which >> 2 & 1;
      CUdeviceptr block = 0, ballast = 0;
      must(cuCtxSetCurrent(contexts[maker]));
      must(cuMemAlloc(&ballast, bytes));
      must(cuMemAlloc(&block, bytes));
      must(cuCtxSetCurrent(contexts[busy]));
      const Spin spin(kernels[busy], streams[busy], 150);
      must(cuCtxSetCurrent(contexts[freeing]));
      const char *ab[] = {"A", "B"};
      const std::string name = std::string("block_of_") + ab[maker] + "_kernel_in_" + ab[busy] + "_freed_in_" +
                               ab[freeing] + "_" + size_name(bytes);
      const CUresult code = cuMemFree(block);
      test.yes(name + "_waited", !spin.running());
      if (code != CUDA_SUCCESS) test.code(name + "_code", code);
      must(cuCtxSetCurrent(contexts[maker]));
      must(cuMemFree(ballast));
    }
  }
  test.note("Whether cuMemFree waited for a kernel that does not use the block.");
}

}  // namespace

int main(int count, char **) {
  if (count > 1) return question::run_child(take);
  return question::run({{"costs", costs}, {"reach", reach}, {"free_across", free_across}});
}

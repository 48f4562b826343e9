// A block of cuMemAlloc as programs export and register it: DMA-BUF, SYNC_MEMOPS, legacy IPC, its attributes; of one
// page, of several, and one that lies across others' ends. And which synchronous calls wait once SYNC_MEMOPS is set.
#include <unistd.h>

#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

void ask(Test &test, const std::string &name, CUdeviceptr block, std::size_t bytes) {
  const auto dma_buf = [&](const std::string &what, CUdeviceptr address, std::size_t length) {
    int file = -1;
    test.code(name + "." + what + "_code",
              cuMemGetHandleForAddressRange(&file, address, length, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    test.yes(name + "." + what + "_has_a_file", file >= 0);
    if (file >= 0) close(file);
  };
  dma_buf("dma_buf", block, bytes);
  dma_buf("dma_buf_of_a_part", block + bytes / 2, bytes / 4);
  unsigned on = 1, seen = 0;
  test.code(name + ".sync_memops_code", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  test.code(name + ".sync_memops_query_code", cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  test.number(name + ".sync_memops", seen);
  unsigned long long id = 0;
  test.code(name + ".buffer_id_code", cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
  CUipcMemHandle handle = {};
  test.code(name + ".ipc_code", cuIpcGetMemHandle(&handle, block));
  bool able = false;
  test.code(name + ".rdma_query_code",
            cuPointerGetAttribute(&able, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, block));
  test.yes(name + ".rdma_capable", able);
}

void blocks(Test &test) {
  int able = 0;
  must(cuDeviceGetAttribute(&able, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
  test.number("device_has_dma_buf", able);
  Cleanup cleanup;
  for (const std::size_t bytes : {64 * kKiB, 2 * kMiB, 16 * kMiB, kGiB}) {
    CUdeviceptr block = 0;
    must(cuMemAlloc(&block, bytes));
    cleanup.add([block] { cuMemFree(block); });
    ask(test, size_name(bytes), block, bytes);
  }
  // Every second of a row of blocks freed, then one that is larger than each hole.
  std::vector<CUdeviceptr> row(64);
  for (CUdeviceptr &block : row) must(cuMemAlloc(&block, 6 * kMiB));
  for (std::size_t i = 0; i < row.size(); i += 2) must(cuMemFree(row[i]));
  must(cuCtxSynchronize());
  CUdeviceptr large = 0;
  must(cuMemAlloc(&large, 96 * kMiB));
  ask(test, "96MiB_among_others", large, 96 * kMiB);
  must(cuMemFree(large));
  for (std::size_t i = 1; i < row.size(); i += 2) must(cuMemFree(row[i]));
  test.note("What programs ask of the blocks that they share with other devices and processes.");
}

constexpr std::size_t kBytes = 4 * kMiB;

struct Call {
  const char *name;
  std::function<CUresult()> run;
};

std::vector<Call> synchronous_calls(CUdeviceptr block, CUdeviceptr other) {
  return {{"fill", [=] { return cuMemsetD8(block, 1, kBytes); }},
          {"fill_of_the_other", [=] { return cuMemsetD8(other, 1, kBytes); }},
          {"copy_to_it", [=] { return cuMemcpyDtoD(block, other, kBytes); }},
          {"copy_from_it", [=] { return cuMemcpyDtoD(other, block, kBytes); }},
          {"copy_of_rows", [=] {
             CUDA_MEMCPY2D rows = {};
             rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
             rows.srcDevice = other;
             rows.dstDevice = block;
             rows.srcPitch = rows.dstPitch = 2 * kKiB;
             rows.WidthInBytes = kKiB;
             rows.Height = 512;
             return cuMemcpy2D(&rows);
           }}};
}

// Each call while a kernel runs in a blocking stream, which the default stream waits for.
void marked(Test &test) {
  const Kernels kernels = load_kernels();
  Cleanup cleanup;
  CUdeviceptr blocks[2] = {};
  for (CUdeviceptr &block : blocks) {
    must(cuMemAlloc(&block, kBytes));
    cleanup.add([block] { cuMemFree(block); });
  }
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  cleanup.add([stream] { cuStreamDestroy(stream); });
  const std::vector<Call> calls = synchronous_calls(blocks[0], blocks[1]);
  for (const Call &call : calls) must(call.run());  // what is loaded at a first use is loaded
  must(cuCtxSynchronize());
  const auto ask_all = [&](const std::string &when, unsigned busy_ms) {
    for (const Call &call : calls) {
      const Spin spin(kernels, stream, busy_ms);
      const CUresult code = call.run();
      test.yes(when + "." + call.name + "_waits", !spin.running());
      test.code(when + "." + call.name + "_code", code);
    }
  };
  const auto mark = [&](unsigned on) { must(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, blocks[0])); };
  ask_all("unmarked", 1000);
  mark(1);
  ask_all("marked", 50);
  mark(0);
  ask_all("unmarked_again", 1000);
  test.note("Which synchronous calls wait until they are done, with and without SYNC_MEMOPS.");
}

}  // namespace

int main() {
  return question::run({{"blocks", blocks}, {"marked", marked}});
}

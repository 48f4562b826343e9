// Closes its standard streams, and prints to their numbers from another thread all the time: while CUDA starts, while
// it allocates and shares a block. Exits with 0 if each call answered 0. (The numbers may lead to files of the
// driver's.)
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

int main() {
  for (int stream = 0; stream <= 2; ++stream) close(stream);
  std::atomic<bool> over{false};
  std::thread printer([&] {
    while (!over) {
      for (int stream = 0; stream <= 2; ++stream) (void)!write(stream, "printed\n", 8);
    }
  });
  CUcontext context = nullptr;
  bool failed = cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
                cuCtxSetCurrent(context) != CUDA_SUCCESS;
  for (int block = 0; block < 20 && !failed; ++block) {
    CUdeviceptr address = 0;
    CUipcMemHandle handle;
    failed = cuMemAlloc(&address, 3 << 20) != CUDA_SUCCESS || cuIpcGetMemHandle(&handle, address) != CUDA_SUCCESS ||
             cuMemFree(address) != CUDA_SUCCESS;
  }
  over = true;
  printer.join();
  return failed ? 1 : 0;
}

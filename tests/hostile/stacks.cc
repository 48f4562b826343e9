// stacks CALL... [fork CALL...]: makes each call on a stack that was painted before, and prints how deep the call got:
// CALL=BYTES. The pages below the stack are not accessible: a call that needs more than there is, and probes its
// frames, ends there. Where STACKS_BYTES is set, the stack has that many bytes.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace {

constexpr size_t kDefaultBytes = 256 << 10;
constexpr size_t kPage = 4096;
constexpr unsigned char kPaint = 0xa5;

CUcontext context = nullptr;
CUdeviceptr block = 0;
CUstream stream = nullptr;

struct Call {
  const char *name;
  CUresult (*make)();
};
const Call kCalls[] = {
    {"init", [] { return cuInit(0); }},
    {"count",
     [] {
       int count = 0;
       return cuDeviceGetCount(&count);
     }},
    {"total",
     [] {
       size_t bytes = 0;
       return cuDeviceTotalMem_v2(&bytes, 0);
     }},
    {"context", [] { return cuCtxCreate_v2(&context, 0, 0); }},
    {"retain", [] { return cuDevicePrimaryCtxRetain(&context, 0); }},
    {"info",
     [] {
       size_t free_bytes = 0;
       size_t total = 0;
       return cuMemGetInfo_v2(&free_bytes, &total);
     }},
    {"alloc", [] { return cuMemAlloc_v2(&block, 1 << 20); }},
    {"large", [] { return cuMemAlloc_v2(&block, 100 << 20); }},
    {"refused",
     [] {
       CUdeviceptr address = 0;
       return cuMemAlloc_v2(&address, size_t{1} << 40);
     }},
    {"managed",
     [] {
       CUdeviceptr address = 0;
       return cuMemAllocManaged(&address, 1 << 20, CU_MEM_ATTACH_GLOBAL);
     }},
    {"async",
     [] {
       CUdeviceptr address = 0;
       return cuMemAllocAsync(&address, 1 << 20, stream);
     }},
    {"create",
     [] {
       CUmemAllocationProp wanted{};
       wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       CUmemGenericAllocationHandle handle = 0;
       return cuMemCreate(&handle, 2 << 20, &wanted, 0);
     }},
    {"array",
     [] {
       const CUDA_ARRAY_DESCRIPTOR wanted{64, 64, CU_AD_FORMAT_UNSIGNED_INT32, 1};
       CUarray array = nullptr;
       return cuArrayCreate_v2(&array, &wanted);
     }},
    {"free", [] { return cuMemFree_v2(block); }},
    {"synchronize", [] { return cuCtxSynchronize(); }},
    {"share",
     [] {
       CUipcMemHandle handle;
       return cuIpcGetMemHandle(&handle, block);
     }},
    {"destroy", [] { return cuCtxDestroy_v2(context); }},
};

struct Made {
  const Call *call;
  CUresult code;
};

// Only the call's own frames come below this one.
void *make(void *argument) {
  auto &made = *static_cast<Made *>(argument);
  if (context != nullptr) {
    cuCtxSetCurrent(context);
  }
  made.code = made.call->make();
  return nullptr;
}

size_t bytes_of_stack() {
  const char *asked = getenv("STACKS_BYTES");
  return asked != nullptr ? strtoul(asked, nullptr, 10) : kDefaultBytes;
}

// Depth below the top of the stack, where the thread itself begins.
size_t depth_of(Made &made) {
  const size_t bytes = bytes_of_stack();
  auto *region = static_cast<unsigned char *>(
      mmap(nullptr, bytes + 16 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  unsigned char *stack = region + 16 * kPage;
  mprotect(stack, bytes, PROT_READ | PROT_WRITE);
  memset(stack, kPaint, bytes);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, bytes);
  if (pthread_create(&thread, &attributes, make, &made) != 0) {
    fprintf(stderr, "no thread\n");
    exit(1);
  }
  pthread_join(thread, nullptr);
  size_t untouched = 0;
  while (untouched < bytes && stack[untouched] == kPaint) {
    ++untouched;
  }
  munmap(region, bytes + 16 * kPage);
  return bytes - untouched;
}

CUresult nothing() {
  return CUDA_SUCCESS;
}

}  // namespace

int main(int count, char **arguments) {
  const Call base{"nothing", nothing};
  Made none{&base, CUDA_SUCCESS};
  const size_t bare = depth_of(none);
  for (int i = 1; i < count; ++i) {
    if (strcmp(arguments[i], "fork") == 0) {
      const pid_t child = fork();
      if (child != 0) {
        int status = 0;
        waitpid(child, &status, 0);
        return status == 0 ? 0 : 1;
      }
    }
    for (const Call &call : kCalls) {
      if (strcmp(call.name, arguments[i]) == 0) {
        Made made{&call, CUDA_SUCCESS};
        const size_t depth = depth_of(made);
        printf("%s=%zu,%d ", call.name, depth - bare, static_cast<int>(made.code));
      }
    }
  }
  printf("\n");
  return 0;
}

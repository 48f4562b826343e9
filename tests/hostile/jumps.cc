// jumps WAY CALL PLACE [FUNCTION]: a callback that the driver makes from inside CALL (from FUNCTION, which CALL leads
// to) leaves it by WAY, and the thread goes on. WAY: longjmp | signal (a handler jumps) | alternate (on a stack of its
// own) | coroutine (comes back later). Or it stays: call (makes a call itself) | signal_call | alternate_call (a
// handler does). PLACE: how deep in the stack the later calls are made: same | deeper | shallower. Prints the codes of
// those calls.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <string>
#include <thread>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "tests/simcuda/include/simcuda/simcuda.h"

namespace {

constexpr size_t kTooMuch = size_t{2} << 30;  // the limit is 1 GiB
constexpr size_t kLittle = size_t{1} << 20;
constexpr size_t kDeep = 64 << 10;

std::string way;
std::string watched;
jmp_buf outside;
sigjmp_buf outside_handler;
ucontext_t main_context, coroutine;
char coroutine_stack[256 << 10];
char signal_stack[64 << 10];
CUstream stream = nullptr;
CUdeviceptr block = 0;
bool ended = false;

CUresult take(size_t bytes) {
  CUdeviceptr address = 0;
  return cuMemAlloc_v2(&address, bytes);
}

void handler(int) {
  if (way == "signal_call" || way == "alternate_call") {
    printf("inside=%d ", static_cast<int>(take(kTooMuch)));
  } else {
    siglongjmp(outside_handler, 1);
  }
}

void callback() {
  simcuda_on_call(nullptr, nullptr);
  if (way == "longjmp") {
    longjmp(outside, 1);
  } else if (way == "coroutine") {
    swapcontext(&coroutine, &main_context);
  } else if (way == "call") {
    printf("inside=%d ", static_cast<int>(take(kTooMuch)));
  } else {
    raise(SIGUSR1);
  }
}

struct Call {
  const char *name;
  CUresult (*make)();
};
const Call kCalls[] = {
    {"cuMemAlloc_v2", [] { return take(700 << 20); }},
    {"cuMemFree_v2", [] { return cuMemFree_v2(block); }},
    {"cuMemAllocManaged",
     [] {
       CUdeviceptr address = 0;
       return cuMemAllocManaged(&address, kLittle, CU_MEM_ATTACH_GLOBAL);
     }},
    {"cuMemAllocPitch_v2",
     [] {
       CUdeviceptr address = 0;
       size_t pitch = 0;
       return cuMemAllocPitch_v2(&address, &pitch, 1000, 600 << 10, 4);
     }},
    {"cuMemHostAlloc",
     [] {
       void *address = nullptr;
       return cuMemHostAlloc(&address, kLittle, 0);
     }},
    {"cuMemAllocAsync",
     [] {
       CUdeviceptr address = 0;
       return cuMemAllocAsync(&address, kLittle, stream);
     }},
    {"cuMemCreate",
     [] {
       CUmemAllocationProp wanted{};
       wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       CUmemGenericAllocationHandle handle = 0;
       return cuMemCreate(&handle, 2 << 20, &wanted, 0);
     }},
    {"cuArrayCreate_v2",
     [] {
       const CUDA_ARRAY_DESCRIPTOR wanted{1024, 1024, CU_AD_FORMAT_UNSIGNED_INT32, 1};
       CUarray array = nullptr;
       return cuArrayCreate_v2(&array, &wanted);
     }},
    {"cuMemGetInfo_v2",
     [] {
       size_t free_bytes = 0;
       size_t total = 0;
       return cuMemGetInfo_v2(&free_bytes, &total);
     }},
    {"cuCtxSynchronize", [] { return cuCtxSynchronize(); }},
    {"cuStreamSynchronize", [] { return cuStreamSynchronize(stream); }},
    {"cuMemcpyDtoD_v2", [] { return cuMemcpyDtoD_v2(block, block + 4096, 1024); }},
    {"cuDevicePrimaryCtxRetain",
     [] {
       CUcontext context = nullptr;
       return cuDevicePrimaryCtxRetain(&context, 0);
     }},
    {"cuStreamDestroy_v2", [] { return cuStreamDestroy_v2(stream); }},
};

const Call &call_named(const std::string &name) {
  for (const Call &call : kCalls) {
    if (name == call.name) {
      return call;
    }
  }
  fprintf(stderr, "no such call: %s\n", name.c_str());
  exit(2);
}

// Leaves what is in its frame as it was: what a frame that is gone left there stays.
template <class Body>
__attribute__((noinline)) void deeper(const Body &body) {
  char untouched[kDeep];
  asm volatile("" : : "r"(untouched) : "memory");
  body();
  asm volatile("" : : "r"(untouched) : "memory");
}

void go_on(const char *when) {
  printf("%s=%d,%d ", when, static_cast<int>(take(kTooMuch)), static_cast<int>(take(kLittle)));
}

__attribute__((noinline)) void leave(const Call &call) {
  simcuda_on_call(watched.c_str(), callback);
  if (way == "coroutine") {
    static const Call *within;
    within = &call;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = coroutine_stack;
    coroutine.uc_stack.ss_size = sizeof(coroutine_stack);
    coroutine.uc_link = &main_context;
    makecontext(
        &coroutine,
        [] {
          printf("%s=%d ", within->name, static_cast<int>(within->make()));
          ended = true;
        },
        0);
    swapcontext(&main_context, &coroutine);
  } else if (setjmp(outside) == 0 && sigsetjmp(outside_handler, 1) == 0) {
    printf("left=%d ", static_cast<int>(call.make()));
  }
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 4) {
    return 2;
  }
  watched = arguments[count - 1 == 4 ? 4 : 2];
  way = arguments[1];
  const Call &call = call_named(arguments[2]);
  const std::string place = arguments[3];
  const stack_t other{signal_stack, 0, sizeof(signal_stack)};
  struct sigaction action {};
  action.sa_handler = handler;
  if (way.compare(0, 9, "alternate") == 0) {
    sigaltstack(&other, nullptr);
    action.sa_flags = SA_ONSTACK;
  }
  sigaction(SIGUSR1, &action, nullptr);
  CUcontext context = nullptr;
  const auto start = [&] {
    return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
           cuCtxSetCurrent(context) == CUDA_SUCCESS && cuMemAlloc_v2(&block, 64 << 20) == CUDA_SUCCESS;
  };
  if (place == "first") {  // its first calls, in which Ration starts
    simcuda_on_call(watched.c_str(), callback);
    if (setjmp(outside) == 0 && sigsetjmp(outside_handler, 1) == 0) {
      printf("left=%d ", start() ? 0 : 1);
    }
    simcuda_on_call(nullptr, nullptr);
  }
  if (!start() || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    fprintf(stderr, "no driver\n");
    return 1;
  }
  if (place == "first") {
  } else if (place == "shallower") {
    deeper([&] { leave(call); });
  } else {
    leave(call);
  }
  simcuda_on_call(nullptr, nullptr);
  const auto later = [&](const char *when) { place == "deeper" ? deeper([&] { go_on(when); }) : go_on(when); };
  later("later");
  later("again");
  if (way == "coroutine" && !ended) {
    swapcontext(&main_context, &coroutine);
    later("returned");
  }
  std::thread([&] {
    cuCtxSetCurrent(context);
    go_on("elsewhere");
  }).join();
  printf("\n");
  return 0;
}

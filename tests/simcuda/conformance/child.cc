// One CUDA process of the process tests: runs the command in its first argument and reports on stdout, line by line.
// Loads the driver at run time, not by linking, so that it runs on any driver, however small.
#define __CUDA_API_VERSION_INTERNAL  // exports by their own names
#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simcuda/simcuda.h"
#include "tests/simcuda/conformance/child_graph.h"
#include "tests/simcuda/conformance/child_sharing.h"

namespace {

void *library(const char *name) {
  void *const handle = ::dlopen(name, RTLD_NOW);
  if (handle == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
  return handle;
}

template <class Function>
Function find(void *from, const char *name) {
  return from == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(from, name));
}

#define DRIVER(symbol) find<decltype(&symbol)>(library("libcuda.so.1"), #symbol)
#define MONITOR(symbol) find<decltype(&symbol)>(library("libnvidia-ml.so.1"), #symbol)

void say(const std::string &line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void say(CUresult result) {
  say(std::to_string(static_cast<int>(result)));
}

// Until the parent closes this process's input.
void await_leave() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

CUresult start() {
  if (const CUresult error = DRIVER(cuInit)(0); error != CUDA_SUCCESS) return error;
  CUcontext context = nullptr;
  return DRIVER(cuCtxCreate_v2)(&context, 0, 0);
}

int devices() {
  const CUresult error = DRIVER(cuInit)(0);
  say(error);
  if (error != CUDA_SUCCESS) return 0;
  int count = 0;
  DRIVER(cuDeviceGetCount)(&count);
  say(std::to_string(count));
  for (int i = 0; i < count; ++i) {
    CUuuid uuid = {};
    std::size_t bytes = 0;
    DRIVER(cuDeviceGetUuid_v2)(&uuid, i);
    DRIVER(cuDeviceTotalMem_v2)(&bytes, i);
    std::string text = "GPU-";
    for (int at = 0; at < 16; ++at) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[at]));
      if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
      text += hex;
    }
    say(text + " " + std::to_string(bytes));
  }
  return 0;
}

// Allocates blocks until one is refused, reports the number, and keeps them.
int fill(std::size_t bytes) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  say("ready");
  await_leave();  // all of a test's fillers start at once
  const auto allocate = DRIVER(cuMemAlloc_v2);
  CUdeviceptr address = 0;
  int blocks = 0;
  while (allocate(&address, bytes) == CUDA_SUCCESS) ++blocks;
  say(std::to_string(blocks));
  ::pause();
  return 0;
}

int hold(std::size_t bytes) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  CUdeviceptr address = 0;
  say(DRIVER(cuMemAlloc_v2)(&address, bytes));
  await_leave();
  return 0;
}

int hold_graph(std::size_t bytes) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  say(std::to_string(launch_graph(bytes)));
  await_leave();
  return 0;
}

// Allocates and frees at random until it is killed; never holds more than 128 MiB.
int churn(unsigned seed) {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  const auto allocate = DRIVER(cuMemAlloc_v2);
  const auto release = DRIVER(cuMemFree_v2);
  say("ready");
  std::mt19937 random(seed);
  std::vector<CUdeviceptr> blocks;
  while (true) {
    CUdeviceptr address = 0;
    if (blocks.size() < 16 && random() % 2 == 0 && allocate(&address, 1 + random() % (8u << 20)) == CUDA_SUCCESS) {
      blocks.push_back(address);
    } else if (!blocks.empty()) {
      release(blocks.back());
      blocks.pop_back();
    }
  }
}

// Reports the monitor's figure of used bytes on device 0, once it is `expected` or the wait times out.
int await_used(unsigned long long expected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  nvmlDevice_t device = nullptr;
  nvmlMemory_t memory = {};
  if (MONITOR(nvmlInit_v2)() != NVML_SUCCESS) return 1;
  if (MONITOR(nvmlDeviceGetHandleByIndex_v2)(0, &device) != NVML_SUCCESS) return 1;
  do {
    if (MONITOR(nvmlDeviceGetMemoryInfo)(device, &memory) != NVML_SUCCESS) return 1;
  } while (memory.used != expected && std::chrono::steady_clock::now() < deadline);
  say(std::to_string(memory.used));
  nvmlProcessInfo_t processes[64];
  unsigned count = 64;
  if (MONITOR(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, processes) != NVML_SUCCESS) return 1;
  for (unsigned i = 0; i < count; ++i) {
    say(std::to_string(processes[i].pid) + " " + std::to_string(processes[i].usedGpuMemory));
  }
  return 0;
}

// The results of a forked child's calls: its exit status counts those other than NOT_INITIALIZED.
int answers_after_fork() {
  CUdeviceptr address = 0;
  CUcontext context = nullptr;
  std::size_t bytes = 0;
  int count = 0;
  const CUresult answers[] = {DRIVER(cuInit)(0),
                              DRIVER(cuMemAlloc_v2)(&address, 1),
                              DRIVER(cuMemFree_v2)(0),
                              DRIVER(cuCtxGetCurrent)(&context),
                              DRIVER(cuMemGetInfo_v2)(&bytes, &bytes),
                              DRIVER(cuCtxSynchronize)(),
                              DRIVER(cuDeviceGetCount)(&count)};
  int others = 0;
  for (const CUresult answer : answers) others += answer != CUDA_ERROR_NOT_INITIALIZED;
  return others;
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Forks repeatedly while another thread is inside the driver.
int fork_after() {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  CUcontext context = nullptr;
  DRIVER(cuCtxGetCurrent)(&context);
  const auto allocate = DRIVER(cuMemAlloc_v2);
  const auto release = DRIVER(cuMemFree_v2);
  const auto fill_bytes = DRIVER(cuMemsetD8Async);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    DRIVER(cuCtxSetCurrent)(context);
    while (!stop) {
      CUdeviceptr address = 0;
      allocate(&address, 4096);
      fill_bytes(address, 0, 4096, nullptr);
      release(address);
    }
  });
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(answers_after_fork());
    wrong += status_of(child);
  }
  stop = true;
  busy.join();
  say(std::to_string(wrong));
  CUdeviceptr address = 0;
  say(allocate(&address, 16));  // the parent still works
  return 0;
}

int fork_before() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(static_cast<int>(start()));
  say(std::to_string(status_of(child)));
  say(start());
  return 0;
}

void forever(void *) {
  while (true) ::pause();
}

int leave_busy() {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  say(DRIVER(cuLaunchHostFunc)(nullptr, forever, nullptr));
  return 0;
}

void allocate_late() {
  CUdeviceptr address = 0;
  say(DRIVER(cuMemAlloc_v2)(&address, 4096));
  say(DRIVER(cuMemsetD8_v2)(address, 1, 4096));
  say(DRIVER(cuMemFree_v2)(address));
}

// Registered before the driver was loaded, so it runs after the driver's own exit handlers.
int leave_late() {
  std::atexit(allocate_late);
  return static_cast<int>(start());
}

int touch() {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  CUdeviceptr address = 0;
  say(DRIVER(cuMemAlloc_v2)(&address, 4096));
  *reinterpret_cast<volatile char *>(address) = 1;  // as on hardware: the host may not
  say("survived");
  return 0;
}

int four_allocations() {
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  for (int i = 0; i < 4; ++i) {
    CUdeviceptr address = 0x1234;
    const CUresult result = DRIVER(cuMemAlloc_v2)(&address, 16);
    if (result != CUDA_SUCCESS && address != 0) return 1;
    say(result);
  }
  return 0;
}

// Whole milliseconds of a call.
template <class Call>
int milliseconds_of(Call call) {
  const auto begun = std::chrono::steady_clock::now();
  if (const CUresult error = call(); error != CUDA_SUCCESS) return -static_cast<int>(error);
  return static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun).count());
}

// Maps four granules, one call each, then allows access to all and unmaps all in one call each. Says what each kind of
// call took.
int map_four() {
  constexpr size_t kGranule = size_t{2} << 20;
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device;
  const CUmemAccessDesc access{device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  say(std::to_string(milliseconds_of([&] { return DRIVER(cuMemCreate)(&handle, kGranule, &properties, 0); })));
  if (const CUresult error = DRIVER(cuMemAddressReserve)(&range, 4 * kGranule, 0, 0, 0)) return static_cast<int>(error);
  for (CUdeviceptr at = range; at < range + 4 * kGranule; at += kGranule) {
    say(std::to_string(milliseconds_of([&] { return DRIVER(cuMemMap)(at, kGranule, 0, handle, 0); })));
  }
  say(std::to_string(milliseconds_of([&] { return DRIVER(cuMemSetAccess)(range, 4 * kGranule, &access, 1); })));
  say(std::to_string(milliseconds_of([&] { return DRIVER(cuMemUnmap)(range, 4 * kGranule); })));
  return 0;
}

// Says what a context costs in MiB, then what cuMemAlloc and cuMemCreate of 2 MiB take in tenths of microseconds.
int costs() {
  constexpr size_t kGranule = size_t{2} << 20;
  if (const CUresult error = start(); error != CUDA_SUCCESS) return static_cast<int>(error);
  simcuda_books books = {};
  DRIVER(simcuda_device_books)(0, &books);
  say(std::to_string(books.context_bytes >> 20));
  auto spent = [last = 0ull]() mutable {
    const unsigned long long now = DRIVER(simcuda_costs_ns)();
    return std::to_string((now - std::exchange(last, now)) / 100);
  };
  spent();
  CUdeviceptr block = 0;
  if (const CUresult error = DRIVER(cuMemAlloc_v2)(&block, kGranule)) return static_cast<int>(error);
  say(spent());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult error = DRIVER(cuMemCreate)(&handle, kGranule, &properties, 0)) return static_cast<int>(error);
  say(spent());
  return 0;
}

int look_up(const char *name) {
  void *address = nullptr;
  say(DRIVER(cuGetProcAddress_v2)(name, &address, 12000, 0, nullptr));
  return 0;
}

int before_init() {
  int count = 0;
  CUdeviceptr address = 0;
  CUcontext context = nullptr;
  say(DRIVER(cuDeviceGetCount)(&count));
  say(DRIVER(cuMemAlloc_v2)(&address, 16));
  say(DRIVER(cuCtxGetCurrent)(&context));
  say(DRIVER(cuDriverGetVersion)(&count));
  return 0;
}

// The commands for which every driver has the functions.
int least() {
  say(DRIVER(cuInit)(0));
  CUdevice device = -1;
  say(DRIVER(cuDeviceGet)(&device, 0));
  if (const auto create = DRIVER(cuCtxCreate_v2); create != nullptr) {
    CUcontext context = nullptr;
    say(create(&context, 0, 0));
  }
  CUdeviceptr address = 0;
  say(DRIVER(cuMemAlloc_v2)(&address, 1 << 20));
  say(DRIVER(cuMemFree_v2)(address));
  say(DRIVER(cuMemcpyHtoD_v2) == nullptr ? "no copies" : "copies");
  say(DRIVER(cuGetProcAddress_v2) == nullptr ? "no look-up" : "look-up");
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  const unsigned long long number = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
  if (what == "devices") return devices();
  if (what == "fill") return fill(number);
  if (what == "hold") return hold(number);
  if (what == "hold_graph") return hold_graph(number);
  if (what == "churn") return churn(static_cast<unsigned>(number));
  if (what == "await_used") return await_used(number);
  if (what == "fork_after") return fork_after();
  if (what == "fork_before") return fork_before();
  if (what == "leave_busy") return leave_busy();
  if (what == "leave_late") return leave_late();
  if (what == "touch") return touch();
  if (what == "four_allocations") return four_allocations();
  if (what == "map_four") return map_four();
  if (what == "costs") return costs();
  if (what == "look_up" && count > 2) return look_up(arguments[2]);
  if (what == "before_init") return before_init();
  if (what == "least") return least();
  if (what == "share_memory") return share_memory();
  if (what == "give_memory_away") return give_memory_away();
  std::fprintf(stderr, "usage: %s WHAT [NUMBER]\n", arguments[0]);
  return 125;
}

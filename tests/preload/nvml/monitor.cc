// A program that monitors devices through NVML, and may also use CUDA: runs the ops of its arguments in order, and
// prints a line of JSON for each answer about memory. The first CUDA op opens CUDA, so a pure monitor never does.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "../programs/checks.h"
#include "../programs/fill.h"
#include "nvml_calls.h"

namespace {

monitor::Nvml nvml;
CUdeviceptr latest = 0;

template <class Function>
Function cuda(const char *name) {
  static void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(driver, name));
}

bool handle_by(const std::string &way, unsigned index, nvmlDevice_t &device) {
  char uuid[96] = {};
  nvmlPciInfo_t pci = {};
  if (nvml.by_index(index, &device) != NVML_SUCCESS || nvml.uuid(device, uuid, sizeof(uuid)) != NVML_SUCCESS ||
      nvml.pci(device, &pci) != NVML_SUCCESS) {
    return false;
  }
  return way == "index" || (way == "uuid" && nvml.by_uuid(uuid, &device) == NVML_SUCCESS) ||
         (way == "pci" && nvml.by_pci(pci.busId, &device) == NVML_SUCCESS);
}

bool tell_name(unsigned index) {
  nvmlDevice_t device = nullptr;
  char uuid[96] = {};
  const bool reported =
      nvml.by_index(index, &device) == NVML_SUCCESS && nvml.uuid(device, uuid, sizeof(uuid)) == NVML_SUCCESS;
  dprintf(1, "{\"op\":\"name\",\"uuid\":\"%s\"}\n", uuid);
  return reported;
}

bool tell(const std::string &way, unsigned index) {
  nvmlDevice_t device = nullptr;
  nvmlMemory_t one = {};
  nvmlMemory_v2_t two = {};
  two.version = nvmlMemory_v2;
  if (!handle_by(way, index, device) || nvml.memory(device, &one) != NVML_SUCCESS ||
      nvml.memory_v2(device, &two) != NVML_SUCCESS) {
    return false;
  }
  dprintf(1, "{\"op\":\"%s=%u\",\"v1\":[%llu,%llu,%llu],\"v2\":[%llu,%llu,%llu,%llu],\"version\":%u}\n", way.c_str(),
          index, one.total, one.free, one.used, two.total, two.reserved, two.free, two.used, two.version);
  return true;
}

bool race(unsigned count) {
  nvmlDevice_t device = nullptr;
  if (nvml.by_index(0, &device) != NVML_SUCCESS) {
    return false;
  }
  std::vector<nvmlMemory_t> reported(count);
  std::vector<std::thread> threads;
  std::atomic<unsigned> ready{0};
  for (nvmlMemory_t &one : reported) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < count) {
        std::this_thread::yield();
      }
      if (nvml.memory(device, &one) != NVML_SUCCESS) {
        one.total = 0;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  const auto same = std::count_if(reported.begin(), reported.end(), [&](const nvmlMemory_t &one) {
    return one.total != 0 && one.total == reported[0].total && one.free == reported[0].free;
  });
  dprintf(1, "{\"op\":\"race\",\"total\":%llu,\"same\":%d}\n", reported[0].total, static_cast<int>(same));
  return true;
}

// NVML's codes for invalid arguments, and whether it left the output untouched.
bool ask_wrongly(unsigned index) {
  nvmlDevice_t device = nullptr;
  nvmlMemory_t one = {1, 2, 3};
  nvmlMemory_v2_t two = {1, 2, 3, 4, 5};
  if (nvml.by_index(index, &device) != NVML_SUCCESS) {
    return false;
  }
  const int codes[] = {nvml.memory(device, nullptr), nvml.memory_v2(device, nullptr), nvml.memory(nullptr, &one),
                       nvml.memory_v2(device, &two)};
  const bool untouched = one.total == 1 && one.free == 2 && one.used == 3 && two.total == 2 && two.used == 5;
  dprintf(1, "{\"op\":\"asked\",\"codes\":[%d,%d,%d,%d],\"untouched\":%s}\n", codes[0], codes[1], codes[2], codes[3],
          untouched ? "true" : "false");
  return true;
}

// NVML's codes, and what it wrote, where the device has no memory of its own.
bool ask_for_all(unsigned index) {
  nvmlDevice_t device = nullptr;
  nvmlMemory_t one = {1, 2, 3};
  nvmlMemory_v2_t two = {nvmlMemory_v2, 2, 3, 4, 5};
  unsigned count = 8;
  nvmlProcessInfo_t processes[8] = {};
  if (nvml.by_index(index, &device) != NVML_SUCCESS) {
    return false;
  }
  const int codes[] = {nvml.memory(device, &one), nvml.memory_v2(device, &two),
                       nvml.processes(device, &count, processes)};
  const bool untouched = one.total == 1 && one.free == 2 && one.used == 3 && two.total == 2 && two.used == 5;
  dprintf(1, "{\"op\":\"all\",\"codes\":[%d,%d,%d],\"untouched\":%s,\"used\":%llu}\n", codes[0], codes[1], codes[2],
          untouched ? "true" : "false", codes[2] == NVML_SUCCESS && count == 1 ? processes[0].usedGpuMemory : 0);
  return true;
}

template <class Info>
void tell_rows(const char *separator, const Info *rows, unsigned count) {
  dprintf(1, "%s[", separator);
  for (unsigned i = 0; i < count; ++i) {
    dprintf(1, "%s[%u,%llu]", i == 0 ? "" : ",", rows[i].pid, rows[i].usedGpuMemory);
  }
  dprintf(1, "]");
}

template <class Info, class Function>
bool tell_list(const char *separator, nvmlDevice_t device, Function function) {
  unsigned count = 64;
  Info rows[64] = {};
  const bool listed = function(device, &count, rows) == NVML_SUCCESS;
  tell_rows(separator, rows, listed ? count : 0);
  return listed;
}

// What every list says, and the account of this process.
bool tell_lists(unsigned index) {
  nvmlDevice_t device = nullptr;
  if (nvml.by_index(index, &device) != NVML_SUCCESS) {
    return false;
  }
  dprintf(1, "{\"op\":\"lists\",\"pid\":%d,\"lists\":[", getpid());
  bool listed = tell_list<nvmlProcessInfo_t>("", device, nvml.processes);
  for (const auto list : nvml.newer_lists) {
    listed = tell_list<nvmlProcessInfo_t>(",", device, list) && listed;
  }
  for (const auto list : nvml.first_lists) {
    listed = tell_list<nvmlProcessInfo_v1_t>(",", device, list) && listed;
  }
  for (unsigned mode = 0; mode < 3; ++mode) {
    nvmlProcessDetail_v1_t rows[64] = {};
    nvmlProcessDetailList_t details = {nvmlProcessDetailList_v1, mode, 64, rows};
    listed = nvml.details(device, &details) == NVML_SUCCESS && listed;
    tell_rows(",", rows, details.numProcArrayEntries);
  }
  nvmlAccountingStats_t account = {};
  const int code = nvml.account(device, static_cast<unsigned>(getpid()), &account);
  dprintf(1, "],\"account\":[%d,%llu]}\n", code, account.maxMemoryUsage);
  return listed;
}

bool tell_memory() {
  size_t free_bytes = 0;
  size_t total = 0;
  const bool reported = cuda<decltype(&cuMemGetInfo_v2)>("cuMemGetInfo_v2")(&free_bytes, &total) == CUDA_SUCCESS;
  dprintf(1, "{\"op\":\"memory\",\"free\":%zu,\"total\":%zu}\n", free_bytes, total);
  return reported;
}

bool enter(CUdevice device) {
  CUcontext context = nullptr;
  return cuda<decltype(&cuCtxCreate_v2)>("cuCtxCreate_v2")(&context, 0, device) == CUDA_SUCCESS;
}

bool allocate(size_t mebibytes) {
  return cuda<decltype(&cuMemAlloc_v2)>("cuMemAlloc_v2")(&latest, mebibytes << 20) == CUDA_SUCCESS;
}

// Ends the parent with its child's status.
bool go_on_in_a_child() {
  const pid_t child = fork();
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return child == 0;
}

bool set(const std::string &assignment) {
  const size_t colon = assignment.find(':');
  return setenv(assignment.substr(0, colon).c_str(), assignment.substr(colon + 1).c_str(), 1) == 0;
}

bool tell_maps(const std::string &name) {
  dprintf(1, "{\"op\":\"maps\",\"mapped\":%s}\n", preload::is_mapped(name.c_str()) ? "true" : "false");
  return true;
}

// start, stop         nvmlInit_v2, nvmlShutdown
// index=N uuid=N pci=N  memory of the device at NVML's index N, whose handle is obtained in that way
// name=N, asked=N     its UUID; the codes for invalid arguments
// all=N               the codes of the queries of memory and of processes
// lists=N             what every list of its processes says, and the account of this one
// race=N              N threads query device 0 at once: how many got the same answer
// init context=N alloc=MIB free memory  CUDA calls; memory is cuMemGetInfo
// set=NAME:VALUE, fork  setenv; runs the remaining ops in a child
// maps=TEXT           whether a file of that name is mapped
bool run(const std::string &op, const std::string &value) {
  const auto number = static_cast<unsigned>(atoi(value.c_str()));
  if (op == "start") return nvml.init() == NVML_SUCCESS;
  if (op == "stop") return nvml.shutdown() == NVML_SUCCESS;
  if (op == "index" || op == "uuid" || op == "pci") return tell(op, number);
  if (op == "name") return tell_name(number);
  if (op == "asked") return ask_wrongly(number);
  if (op == "all") return ask_for_all(number);
  if (op == "lists") return tell_lists(number);
  if (op == "race") return race(number);
  if (op == "init") return cuda<decltype(&cuInit)>("cuInit")(0) == CUDA_SUCCESS;
  if (op == "context") return enter(static_cast<CUdevice>(number));
  if (op == "alloc") return allocate(number);
  if (op == "free") return cuda<decltype(&cuMemFree_v2)>("cuMemFree_v2")(latest) == CUDA_SUCCESS;
  if (op == "memory") return tell_memory();
  if (op == "fork") return go_on_in_a_child();
  if (op == "set") return set(value);
  return op == "maps" && tell_maps(value);
}

}  // namespace

int main(int count, char **arguments) {
  if (!monitor::find_nvml(nvml)) {
    dprintf(2, "no NVML\n");
    return 1;
  }
  for (int i = 1; i < count; ++i) {
    const std::string text(arguments[i]);
    const size_t equals = text.find('=');
    if (!run(text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1))) {
      dprintf(2, "%s failed\n", arguments[i]);
      return 1;
    }
  }
  return 0;
}

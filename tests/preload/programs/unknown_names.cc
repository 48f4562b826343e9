// unknown_names THREADS ORDER STEP...: asks the driver for functions in THREADS threads at once, each for all of them.
// ORDER: before | after the driver's first hooked function is looked up; killed: after it, and then it kills itself.
// STEP: WAY:NAME, or WAY:NAME+N for the N names NAME000, NAME001, ...; WAY: handle | default | next | version (dlvsym)
// | VERSION | VERSION/FLAGS, in which cuGetProcAddress_v2 is asked. In a NAME, % stands for the character 1. It
// allocates 1 MiB, which begins the log, and prints how many of the functions were found.
#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

template <class Function>
Function looked_up(void *driver, const char *name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

struct Step {
  std::string way;
  std::string name;
  int names;  // 0: the name itself
};

std::string numbered(const std::string &name, int number) {
  const std::string digits = std::to_string(number);
  return name + std::string(3 - digits.size(), '0') + digits;
}

Step parsed(std::string text) {
  for (char &letter : text) {
    letter = letter == '%' ? '\1' : letter;
  }
  const auto colon = text.find(':');
  const auto plus = text.find('+');
  return {text.substr(0, colon), text.substr(colon + 1, plus == std::string::npos ? plus : plus - colon - 1),
          plus == std::string::npos ? 0 : atoi(text.c_str() + plus + 1)};
}

bool ask(void *driver, const std::string &way, const std::string &name) {
  if (way == "handle") return dlsym(driver, name.c_str()) != nullptr;
  if (way == "default") return dlsym(RTLD_DEFAULT, name.c_str()) != nullptr;
  if (way == "next") return dlsym(RTLD_NEXT, name.c_str()) != nullptr;
  if (way == "version") return dlvsym(driver, name.c_str(), "CUDA_TEST_1") != nullptr;
  static const auto find = looked_up<decltype(&::cuGetProcAddress_v2)>(driver, "cuGetProcAddress_v2");
  const auto slash = way.find('/');
  const auto flags = slash == std::string::npos ? 0 : strtoull(way.c_str() + slash + 1, nullptr, 0);
  void *found = nullptr;
  CUdriverProcAddressQueryResult status{};
  return find(name.c_str(), &found, atoi(way.c_str()), flags, &status) == CUDA_SUCCESS && found != nullptr;
}

int ask_for_all(void *driver, const std::vector<Step> &steps, int first) {
  int found = 0;
  for (const Step &step : steps) {
    found += step.names == 0 && ask(driver, step.way, step.name) ? 1 : 0;
    for (int i = 0; i < step.names; ++i) {
      found += ask(driver, step.way, numbered(step.name, (first + i) % step.names)) ? 1 : 0;
    }
  }
  return found;
}

bool allocates(void *driver) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  return looked_up<decltype(&::cuInit)>(driver, "cuInit")(0) == CUDA_SUCCESS &&
         looked_up<decltype(&::cuDeviceGet)>(driver, "cuDeviceGet")(&device, 0) == CUDA_SUCCESS &&
         looked_up<decltype(&::cuCtxCreate_v2)>(driver, "cuCtxCreate_v2")(&context, 0, device) == CUDA_SUCCESS &&
         looked_up<decltype(&::cuMemAlloc_v2)>(driver, "cuMemAlloc_v2")(&block, 1 << 20) == CUDA_SUCCESS;
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 3) return 2;
  std::vector<Step> steps;
  for (int i = 3; i < count; ++i) steps.push_back(parsed(arguments[i]));
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return 1;
  const std::string order = arguments[2];
  if (order != "before" && !allocates(driver)) return 1;
  const int threads = atoi(arguments[1]);
  std::atomic<int> found{0};
  std::vector<std::thread> asking;
  for (int i = 0; i < threads; ++i) {
    asking.emplace_back([&, i] { found += ask_for_all(driver, steps, i * 37); });
  }
  for (std::thread &thread : asking) thread.join();
  if (order == "before" && !allocates(driver)) return 1;
  dprintf(1, "found=%d\n", found.load());
  if (order == "killed") raise(SIGKILL);
  return 0;
}

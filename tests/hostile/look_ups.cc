// Looks up names that begin like the driver's, in a process without CUDA: look_ups ROUNDS [LIBRARY]. With a library,
// another thread loads and unloads it meanwhile. Prints how often it was asked whether a library is loaded.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

namespace {

constexpr const char *kForeign[] = {"curl_easy_init",     "cupsServer", "cuNoSuchFunction", "cu",
                                    "nvmlNoSuchFunction", "nvml"};
constexpr const char *kDrivers[] = {"cuMemAlloc_v2", "cuMemFree_v2", "nvmlDeviceGetMemoryInfo"};

using Asked = unsigned long long (*)();

// How many of the look-ups found something.
template <class Names>
int look_up(const Names &names) {
  int found = 0;
  for (const char *name : names) {
    found += dlsym(RTLD_DEFAULT, name) != nullptr ? 1 : 0;
    found += dlsym(RTLD_NEXT, name) != nullptr ? 1 : 0;
  }
  return found;
}

}  // namespace

int main(int count, char **arguments) {
  const int rounds = count > 1 ? atoi(arguments[1]) : 0;
  const auto asked = reinterpret_cast<Asked>(dlsym(RTLD_DEFAULT, "passing_asked"));
  std::atomic<bool> over{false};
  std::atomic<int> loads{0};
  std::thread other;
  if (count > 2) {
    other = std::thread([&] {
      while (!over) {
        if (void *library = dlopen(arguments[2], RTLD_NOW)) {
          ++loads;
          dlclose(library);
        }
      }
    });
    while (loads == 0) std::this_thread::yield();
  }
  int found = 0;
  const unsigned long long before = asked != nullptr ? asked() : 0;
  for (int i = 0; i < rounds; ++i) found += look_up(kForeign);
  const unsigned long long foreign = asked != nullptr ? asked() : 0;
  for (int i = 0; i < rounds; ++i) found += look_up(kDrivers);
  const unsigned long long drivers = asked != nullptr ? asked() : 0;
  over = true;
  if (other.joinable()) other.join();
  printf("found=%d foreign=%llu drivers=%llu counted=%d loads=%d\n", found, foreign - before, drivers - foreign,
         asked != nullptr ? 1 : 0, loads.load());
  return 0;
}

// by_proc_address ENTRY FLAGS WAY: gets every function from cuGetProcAddress. ENTRY: v1 | v2, found by dlsym; linked_v1
// | linked_v2, bound by the linker (in the build that links -lcuda). FLAGS: 0 | 1 | 2. WAY: flat | nested (gets
// cuGetProcAddress from itself first, in each version, as NVIDIA's runtime does).
#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "fill.h"

namespace {

// One cuGetProcAddress of either version.
class Resolver {
 public:
  Resolver(void *address, int version) : address_(address), version_(version) {}

  void *find(const char *name, int version, cuuint64_t flags) const {
    void *found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult code =
        version_ == 1
            ? reinterpret_cast<decltype(&::cuGetProcAddress)>(address_)(name, &found, version, flags)
            : reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(address_)(name, &found, version, flags, &status);
    if (code != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS || found == nullptr) {
      dprintf(2, "%s: %d, status %d\n", name, static_cast<int>(code), static_cast<int>(status));
      exit(1);
    }
    return found;
  }

  // The cuGetProcAddress that it returns for its own name: version 11030 is the first, 12000 the second.
  Resolver nested(int version) const { return {find("cuGetProcAddress", version, 0), version < 12000 ? 1 : 2}; }

 private:
  void *address_;
  int version_;
};

Resolver entry(const std::string &how) {
#ifdef PRELOAD_LINKED
  if (how == "linked_v1") {
    return {reinterpret_cast<void *>(&cuGetProcAddress), 1};
  }
  if (how == "linked_v2") {
    return {reinterpret_cast<void *>(&cuGetProcAddress_v2), 2};
  }
#endif
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  return how == "v1" ? Resolver(dlsym(driver, "cuGetProcAddress"), 1)
                     : Resolver(dlsym(driver, "cuGetProcAddress_v2"), 2);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    return 2;
  }
  const Resolver first = entry(argv[1]);
  const auto flags = static_cast<cuuint64_t>(atoi(argv[2]));
  // 11030 and 12000 alternately, each obtained from the one before.
  const Resolver resolver = std::string(argv[3]) == "nested" ? first.nested(12000).nested(11030).nested(12000) : first;
  return preload::fill({reinterpret_cast<decltype(&::cuInit)>(resolver.find("cuInit", 2000, flags)),
                        reinterpret_cast<decltype(&::cuDeviceGet)>(resolver.find("cuDeviceGet", 2000, flags)),
                        reinterpret_cast<decltype(&::cuCtxCreate_v2)>(resolver.find("cuCtxCreate", 3020, flags)),
                        reinterpret_cast<decltype(&::cuMemAlloc_v2)>(resolver.find("cuMemAlloc", 12000, flags))});
}

// copies WAY=FILE...: opens each driver by one way, and takes up to four blocks of 100 MiB by its functions; by those
// of the last, as many as there are. WAY: dlopen | base (dlmopen) | namespace (a new one) | resolved (functions come
// from cuGetProcAddress). Prints how many blocks there were, and the last code.
#include <dlfcn.h>

#include <string>

#include "tests/preload/programs/fill.h"

namespace {

constexpr int kFew = 4;

void *open_by(const std::string &way, const char *file) {
  if (way == "base" || way == "namespace") {
    return dlmopen(way == "base" ? LM_ID_BASE : LM_ID_NEWLM, file, RTLD_NOW);
  }
  return dlopen(file, RTLD_NOW);
}

preload::Calls calls_by(const std::string &way, void *driver) {
  const auto find = [driver](const char *name) { return dlsym(driver, name); };
  preload::Calls calls = preload::calls_found_by(find);
  if (way == "resolved") {
    const auto resolve = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(find("cuGetProcAddress_v2"));
    void *found = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (resolve == nullptr || resolve("cuMemAlloc", &found, 12000, 0, &status) != CUDA_SUCCESS) {
      dprintf(2, "not resolved\n");
    }
    calls.allocate = reinterpret_cast<decltype(calls.allocate)>(found);
  }
  return calls;
}

}  // namespace

int main(int count, char **arguments) {
  preload::Taken all;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string way = argument.substr(0, equals);
    void *driver = open_by(way, arguments[i] + equals + 1);
    const preload::Calls calls = driver != nullptr ? calls_by(way, driver) : preload::Calls{};
    if (!preload::start(calls)) {
      return 1;
    }
    all.code = CUDA_SUCCESS;
    for (int taken = 0; (taken < kFew || i == count - 1) && all.code == CUDA_SUCCESS; ++taken) {
      CUdeviceptr address = preload::kBefore;
      all.code = calls.allocate(&address, preload::kBlockBytes);
      all.blocks += all.code == CUDA_SUCCESS ? 1 : 0;
    }
  }
  preload::print(all);
  return 0;
}

#include "tests/simcuda/nvml_library.h"

#include <dlfcn.h>

#include <cstring>

#include "tests/simcuda/settings.h"

namespace simcuda {
namespace {

nvmlDevice_st handles[kMostMachineDevices];

// A process alone on its machine keeps the account in its own libcuda.
Machine *private_machine() {
  void *driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = driver == nullptr ? nullptr : ::dlsym(driver, "simcuda_private_machine");
  void *page = symbol == nullptr ? nullptr : reinterpret_cast<void *(*)()>(symbol)();
  return page == nullptr ? nullptr : Machine::watch(page);
}

}  // namespace

Library &library() {
  static auto *const once = new Library;
  return *once;
}

Machine *machine() {
  Library &state = library();
  const std::lock_guard<std::mutex> guard(state.mutex);
  if (state.users == 0) return nullptr;
  if (settings().machine.empty()) {
    static Machine *found = nullptr;
    if (found == nullptr) found = private_machine();
    if (found != nullptr) return found;
  }
  return state.machine;
}

nvmlDevice_t handle_at(unsigned device) {
  return &handles[device];
}

nvmlReturn_t copy_text(const std::string &text, char *to, unsigned length) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace simcuda

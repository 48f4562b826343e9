// The look-ups of the runtime's start-up, in the measured order. Layer: driver.h, dlfcn.
// Called from: startup, once. Owns: nothing; the driver library stays open for ever.
#include <dlfcn.h>

#include <cstring>

#include "driver.h"

namespace simcudart {

Driver driver;

namespace {

struct Lookup {
  const char *name;
  int version;
  cuuint64_t flags;
  const char *symbol;
};

constexpr Lookup kLookups[] = {
#define SIMCUDART_LOOKUP(name, version, flags, symbol) {name, version, flags, symbol},
#include "driver_lookups.inc"
#undef SIMCUDART_LOOKUP
};

// The first rows use the pointer from dlsym, the rest the pointer that the last of these returned.
constexpr size_t kRowsThroughDlsym = 3;

void fill_slot(const char *symbol, void *address) {
#define SIMCUDART_USE(used) \
  if (std::strcmp(symbol, #used) == 0) driver.used = reinterpret_cast<decltype(driver.used)>(address);
#include "driver_uses.inc"
#undef SIMCUDART_USE
}

void look_up_by_version(decltype(&::cuGetProcAddress_v2) get) {
  void *address = nullptr;
  get("", &address, 0, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  for (size_t i = 0; i < sizeof kLookups / sizeof kLookups[0]; ++i) {
    if (i == kRowsThroughDlsym && driver.cuGetProcAddress_v2 != nullptr) get = driver.cuGetProcAddress_v2;
    const Lookup &row = kLookups[i];
    address = nullptr;
    if (get(row.name, &address, row.version, row.flags, nullptr) == CUDA_SUCCESS) fill_slot(row.symbol, address);
  }
}

void look_up_by_export(void *library) {
  for (const Lookup &row : kLookups) fill_slot(row.symbol, dlsym(library, row.symbol));
}

}  // namespace

bool load_driver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return false;
  void *get = dlsym(library, "cuGetProcAddress_v2");
  if (get != nullptr) {
    look_up_by_version(reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(get));
  } else {
    look_up_by_export(library);
  }
  return true;
}

}  // namespace simcudart

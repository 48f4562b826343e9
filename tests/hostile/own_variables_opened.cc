// The same through a library that is loaded late: own_variables_opened LIBRARY BYTES.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "own_variables.h"

namespace {

template <class Function>
Function *variable(void *library, const char *name) {
  return reinterpret_cast<Function *>(dlsym(library, name));
}

}  // namespace

int main(int count, char **arguments) {
  void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW) : nullptr;
  if (library == nullptr || reinterpret_cast<int (*)()>(dlsym(library, "own_variables_load"))() == 0) return 1;
  const size_t bytes = strtoull(arguments[2], nullptr, 10);
  int device = 0;
  void *context = nullptr;
  unsigned long long first = 0;
  unsigned long long second = 0;
  printf("%d ", (*variable<Init>(library, "cuInit"))(0));
  printf("%d ", (*variable<DeviceGet>(library, "cuDeviceGet"))(&device, 0));
  printf("%d ", (*variable<Retain>(library, "cuDevicePrimaryCtxRetain"))(&context, device));
  printf("%d ", (*variable<SetCurrent>(library, "cuCtxSetCurrent"))(context));
  printf("%d ", (*variable<Allocate>(library, "cuMemAlloc_v2"))(&first, bytes));
  printf("%d ", reinterpret_cast<Allocate>(dlsym(library, "own_variables_allocate"))(&second, bytes));
  printf("%d\n", (*variable<Free>(library, "cuMemFree_v2"))(first));
  return 0;
}

// Uses the driver through a library's variables, which it shares: own_variables BYTES. Prints each answer.
#include "own_variables.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  const size_t bytes = count > 1 ? strtoull(arguments[1], nullptr, 10) : 0;
  int device = 0;
  void *context = nullptr;
  unsigned long long first = 0;
  unsigned long long second = 0;
  if (own_variables_load() == 0) return 1;
  printf("%d ", cuInit(0));
  printf("%d ", cuDeviceGet(&device, 0));
  printf("%d ", cuDevicePrimaryCtxRetain(&context, device));
  printf("%d ", cuCtxSetCurrent(context));
  printf("%d ", cuMemAlloc_v2(&first, bytes));
  printf("%d ", own_variables_allocate(&second, bytes));
  printf("%d\n", cuMemFree_v2(first));
  return 0;
}

// Linked with -lcuda; built in every way that such a reference can be bound.
#include "fill.h"

int main() {
  return preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
}

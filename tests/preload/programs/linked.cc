// Linked with -lcuda; built once for each way of binding such a reference.
#include "fill.h"

int main() {
  return preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
}

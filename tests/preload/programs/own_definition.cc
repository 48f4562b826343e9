// Calls driver functions that this process defines; stub.cc says which.
#include "fill.h"

int main() {
  return preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
}

// The variables of own_variables_library.cc.
#pragma once

#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

extern "C" {
using Init = int (*)(unsigned);
using DeviceGet = int (*)(int *, int);
using Retain = int (*)(void **, int);
using SetCurrent = int (*)(void *);
using Allocate = int (*)(unsigned long long *, size_t);
using Free = int (*)(unsigned long long);
extern EXPORTED Init cuInit;
extern EXPORTED DeviceGet cuDeviceGet;
extern EXPORTED Retain cuDevicePrimaryCtxRetain;
extern EXPORTED SetCurrent cuCtxSetCurrent;
extern EXPORTED Allocate cuMemAlloc_v2;
extern EXPORTED Free cuMemFree_v2;
EXPORTED int own_variables_load();
EXPORTED int own_variables_allocate(unsigned long long *address, size_t bytes);
}

/* Entry points of the simulated driver for tests, beyond CUDA. Exported by libcuda.so.1 of simcuda only; a program that
 * must also run on a real driver finds these with dlsym. C and C++; thread-safe; needs no context. */
#ifndef SIMCUDA_SIMCUDA_H_
#define SIMCUDA_SIMCUDA_H_

#include "driver/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SIMCUDA_API __attribute__((visibility("default")))

/* Calls of an export since the start or the last reset, refused ones included; ~0 for a name that is no export. */
SIMCUDA_API unsigned long long simcuda_calls(const char *symbol);
SIMCUDA_API void simcuda_calls_reset(void);

/* Calls back at the start of each call of one export, on its thread and with no lock of the simulator held, like a
 * tool's callback in a driver. The callback need not return. NULL removes it. 0 = done, -1 = no such export. */
SIMCUDA_API int simcuda_on_call(const char *symbol, void (*callback)(void));

/* The sum of the least times that SIMCUDA_COSTS sets for the calls of this process so far. */
SIMCUDA_API unsigned long long simcuda_costs_ns(void);

/* The number of functions that the library exports, and how many of them are simulated. */
SIMCUDA_API unsigned simcuda_exports(unsigned *implemented);

/* One launch as a kernel sees it: params[i] points to the i-th argument's bytes, copied at the launch. */
typedef struct simcuda_launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void **params;
} simcuda_launch;
typedef void (*simcuda_kernel)(const simcuda_launch *launch);

/* Registers a kernel: every module and library then contains a function of that name. It runs once per launch (not
 * once per thread), on a thread of the simulator, and must not call CUDA. 0 = done, -1 = the name is taken. */
SIMCUDA_API int simcuda_register_kernel(const char *name, simcuda_kernel kernel, const size_t *param_bytes,
                                        unsigned params);

/* Registers a device variable: each module has its own, made when it is loaded, and each library one in
 * each context in which it is used, made at the first use. */
SIMCUDA_API int simcuda_register_global(const char *name, size_t bytes);

/* The host's read-write view of the bytes at a device address; NULL outside every device's memory. If addresses
 * are unmapped while work runs, their view remains, so that work which touches them causes a fault of its context. */
SIMCUDA_API void *simcuda_host_view(CUdeviceptr address);

/* The bytes that a device holds for this process, as charged. Allocations (device variables included): multiples of
 * 512 bytes. Arrays, a mipmapped one counting once: multiples of 64 KiB, or nothing where memory is mapped later.
 * Contexts: SIMCUDA_CONTEXT_BYTES each, and what their limits took; 0 for green ones. Memory pools and graphs: the
 * bytes reserved, used or not. */
typedef struct simcuda_books {
  unsigned long long allocations;
  unsigned long long allocation_bytes;
  unsigned long long contexts;
  unsigned long long context_bytes;
  unsigned long long physical; /* of cuMemCreate, referenced or mapped */
  unsigned long long physical_bytes;
  unsigned long long pool_bytes;
  unsigned long long arrays;
  unsigned long long array_bytes;
  unsigned long long graph_bytes;
} simcuda_books;

/* 0 = done; -1: no such device, or cuInit has not succeeded in this process. */
SIMCUDA_API int simcuda_device_books(int device, simcuda_books *books);

/* The machine's page (tests/simcuda/machine.h) if this process is alone on its machine; for libnvidia-ml. */
SIMCUDA_API void *simcuda_private_machine(void);

#ifdef __cplusplus
}
#endif

#endif /* SIMCUDA_SIMCUDA_H_ */

/* What a test can ask of the simulated driver beside CUDA. Exported by libcuda.so.1 of simcuda only; a program that
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

/* How many functions the library exports, and how many of them are simulated. */
SIMCUDA_API unsigned simcuda_exports(unsigned *implemented);

/* One launch as a kernel sees it: params[i] points to the i-th argument's bytes, copied when it was launched. */
typedef struct simcuda_launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void **params;
} simcuda_launch;
typedef void (*simcuda_kernel)(const simcuda_launch *launch);

/* Makes a kernel known: every module and library then contains a function of that name. It runs once a launch (not
 * once a thread), on a thread of the simulator, and must not call CUDA. 0 = done, -1 = the name is taken. */
SIMCUDA_API int simcuda_register_kernel(const char *name, simcuda_kernel kernel, const size_t *param_bytes,
                                        unsigned params);

/* Makes a device variable known: every module and library has its own, allocated when it is first asked for. */
SIMCUDA_API int simcuda_register_global(const char *name, size_t bytes);

/* Where the host can read and write the bytes behind a device address; NULL outside every device's memory. */
SIMCUDA_API void *simcuda_host_view(CUdeviceptr address);

/* What a device holds for this process: allocations (device variables included) at what they cost it, a multiple of
 * 512 bytes, contexts at SIMCUDA_CONTEXT_BYTES (a green context costs nothing of its own), and what memory pools have
 * reserved, whatever they use of it. */
typedef struct simcuda_books {
  unsigned long long allocations;
  unsigned long long allocation_bytes;
  unsigned long long contexts;
  unsigned long long context_bytes;
  unsigned long long physical; /* of cuMemCreate, named or mapped */
  unsigned long long physical_bytes;
  unsigned long long pool_bytes;
} simcuda_books;

/* 0 = done; -1: no such device, or cuInit has not succeeded in this process. */
SIMCUDA_API int simcuda_device_books(int device, simcuda_books *books);

/* The machine's books (tests/simcuda/machine.h) where this process is alone on its machine; for libnvidia-ml. */
SIMCUDA_API void *simcuda_private_machine(void);

#ifdef __cplusplus
}
#endif

#endif /* SIMCUDA_SIMCUDA_H_ */

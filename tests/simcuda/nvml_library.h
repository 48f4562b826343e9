// Shared by the calls of libnvidia-ml.so.1: the machine that they look at, and how they name its devices.
// Layer: machine.h. Threads: any. Owns: its view of the machine, for ever.
#pragma once
#include <mutex>
#include <string>

#include "tests/simcuda/include/nvml.h"
#include "tests/simcuda/machine.h"

struct nvmlDevice_st {};

namespace simcuda {

struct Library {
  std::mutex mutex;
  unsigned users = 0;
  Machine *machine = nullptr;
};

Library &library();

// Null if nvmlInit was not called. A private machine's first driver may load later, so every call looks for it again.
Machine *machine();

nvmlDevice_t handle_at(unsigned device);

nvmlReturn_t copy_text(const std::string &text, char *to, unsigned length);

// Calls body(machine, device) for a device handle of this library.
template <class Body>
nvmlReturn_t with_device(nvmlDevice_t device, Body body) {
  Machine *const seen = machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  for (unsigned i = 0; i < seen->devices(); ++i) {
    if (device == handle_at(i)) return body(*seen, i);
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace simcuda

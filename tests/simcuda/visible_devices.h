// CUDA_VISIBLE_DEVICES: the machine's devices that this process sees, and their order.
// Layer: machine. Threads: any.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tests/simcuda/machine.h"

namespace simcuda {

// Not set: all. Otherwise a list of indices and of UUIDs or unambiguous prefixes of them ("GPU-…"). The list ends at
// the first entry that names no device or repeats a device, as CUDA documents. Empty: none.
std::vector<unsigned> visible_devices(const Machine &machine, const std::optional<std::string> &selection);

// "GPU-01234567-89ab-cdef-0123-456789abcdef"
std::string uuid_text(const unsigned char (&uuid)[16]);

}  // namespace simcuda

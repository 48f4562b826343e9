// Checks whether a driver function that a program asks for is in the catalogue, and records unknown ones, up to a
// bound. Layer: base. Freestanding: the preloaded library uses it before libc is ready. Threads: any; no lock, no
// allocation, no driver call.
#pragma once

#include "core_abi.h"

namespace ration {

// True for a name of at most 100 characters that is "cu", a capital, then letters, digits and underscores, and is not
// in the catalogue of the driver's functions (shim/cuda_memory_api.json and interop_exports.txt).
bool is_unknown_driver_name(const char *name);

// True if the name suggests that the function may allocate, free or share device memory, or begin a capture.
bool may_take_memory(const char *name);

// Counts `text` if it is new, and stores it while there is room, cut to an entry's size. Returns true if it is new.
bool note_name(RationNames &names, const char *text);

// The text that is stored in entry `place`, or nullptr.
const char *name_at(const RationNames &names, unsigned place);

}  // namespace ration

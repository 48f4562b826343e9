// The functions of the driver that a program asks for: which of them the catalogue knows, and a bounded record of
// others. Layer: base. Freestanding: the preload library uses it before libc is ready. Threads: any; no lock, no
// allocation, no driver call.
#pragma once

#include "core_abi.h"

namespace ration {

// "cu", a capital, then letters, digits and underscores, 100 characters at most; and not in the catalogue of the
// driver's functions (shim/cuda_memory_api.json and interop_exports.txt).
bool is_unknown_driver_name(const char *name);

// By its name, a function that may take device memory, give it away, or begin a capture.
bool may_take_memory(const char *name);

// Counts `text` once, and keeps it while there is room. True: it is new. Text beyond a place's size is cut off.
bool note_name(RationNames &names, const char *text);

// The text that is kept at `place`, or nullptr.
const char *name_at(const RationNames &names, unsigned place);

}  // namespace ration

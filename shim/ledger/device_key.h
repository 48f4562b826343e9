// The ledger's key for a device: the sixteen bytes of its UUID. Layer: ledger. Threads: values.
#pragma once

#include <string>
#include <string_view>

#include "ledger/wide_word.h"

namespace ration::ledger {

// Parses "GPU-" or "MIG-" followed by hex digits. A device whose UUID is missing or empty gets a key made from its
// ordinal; that key names the same device only in processes that see the same devices.
// Design: design/ledger.md#device-keys
WideValue device_key(std::string_view uuid, int ordinal);

// Returns "GPU-" and the sixteen bytes in the 8-4-4-4-12 form that nvidia-smi and CUDA_VISIBLE_DEVICES use.
std::string uuid_text(const char (&bytes)[16]);

// Returns the UUID in a key in the form above, or "ordinal N" for a key that was made from an ordinal.
std::string device_text(WideValue key);

}  // namespace ration::ledger

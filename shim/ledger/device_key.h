// The ledger's key of a device: the sixteen bytes of its UUID. Layer: ledger. Threads: values.
#pragma once

#include <string>
#include <string_view>

#include "ledger/wide_word.h"

namespace ration::ledger {

// Parses "GPU-" or "MIG-" and hex digits. A device without a UUID, or with an empty one, gets a key made from its
// ordinal, which is right only among processes that see the same devices.
// Design: design/ledger.md#device-keys
WideValue device_key(std::string_view uuid, int ordinal);

// "GPU-" and sixteen bytes in the 8-4-4-4-12 form that nvidia-smi and CUDA_VISIBLE_DEVICES use.
std::string uuid_text(const char (&bytes)[16]);

// The UUID of a key in that form, or "ordinal N" for a key that was made from an ordinal.
std::string device_text(WideValue key);

}  // namespace ration::ledger

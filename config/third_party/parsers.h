// Parses the values of third-party environment variables, each in the syntax of the program that defined the variable.
// Layer: config, for variables.cc. Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace ration::config {

using Environment = const char *const *;  // NULL-terminated "NAME=value" list

// The first non-empty value of `variable`. JAX treats an empty variable as unset, and so does Ration.
std::optional<std::string_view> value_in(Environment environment, std::string_view variable);

// A setting of Ration to which a third-party value is equivalent.
struct Assignment {
  std::string_view key;  // of options.inc; empty: no option matches
  std::string text;      // the value in the option's syntax
  std::function<void(Settings &)> assign;
  bool confirms = false;  // counts as honoured even if another third-party variable has already set `key`
};

struct ParsedValue {
  LimitMap limit;                    // all items that could be parsed, even if `wrong` is set
  std::vector<Assignment> settings;  // if `limit` is empty and the first one's key is already set, none has an effect
  std::string wrong;                 // why the value cannot be used; empty if it can
  std::string ignored;               // why a valid value changes nothing; empty if it has an effect
};

using Parser = ParsedValue(std::string_view value, Environment environment);

// XLA_CLIENT_MEM_FRACTION: FRACTION, START+ (grows to the whole device) or START-CAP. The limit is exact to 18 decimal
// places. A fraction above 1 sets the whole device as the limit, and managed memory is then only counted.
Parser parse_mem_fraction;
Parser parse_xla_preallocate;
Parser parse_xla_allocator;
Parser parse_tf_allocator;
Parser parse_tf_growth;
Parser parse_tf_unified_memory;
Parser parse_tf_async_preallocate;
Parser parse_tf_deterministic;
// GPU_MEMORY_LIMIT: bytes.
Parser parse_plain_bytes;
// NVIDIA_GPU_MEMORY_LIMIT: whole MiB.
Parser parse_plain_mebibytes;
// GPU_PORTION: a fraction of a device. A value of 1 or more is a number of devices and sets no limit.
Parser parse_portion;
// CUDA_DEVICE_MEMORY_LIMIT: a number as strtoul reads it (with the prefixes 0x and 0), followed by k, m or g.
Parser parse_device_limit;
// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: DEVICE=SIZE,... with the units M, G, MB or GB.
Parser parse_pinned_limit;

}  // namespace ration::config

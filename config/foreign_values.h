// The values of the field's variables, each in the syntax of whoever reads it first. Layer: config. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "config/limit_map.h"

namespace ration::config {

// Without what C and Python take for blanks around it.
std::string_view trimmed(std::string_view text);

// XLA_CLIENT_MEM_FRACTION: Python's float, or START+ (grows to the whole device) or START-CAP. Exact, cut to 18
// decimals. Above 1 is the whole device and `oversubscribes`.
struct MemFraction {
  Size limit;
  std::optional<Size> start;  // where it is not the limit
  bool oversubscribes = false;
};
std::variant<MemFraction, std::string> parse_mem_fraction(std::string_view text);

// CUDA_DEVICE_MEMORY_LIMIT: strtoul's number (0x and 0 are prefixes) and k, m or g. nullopt: 0, which is no limit.
std::variant<std::optional<Size>, std::string> parse_device_limit(std::string_view text);

// GPU_MEMORY_LIMIT: bytes.
std::variant<Size, std::string> parse_plain_bytes(std::string_view text);

// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: DEVICE=SIZE,... with M or G, also MB and GB. Appends what can be read; what is
// wrong with the first other item.
std::string parse_pinned_limit(std::string_view text, LimitMap &items);

// 64 bits with a sign; blanks around them do not matter.
std::optional<std::int64_t> parse_integer(std::string_view text);

// What TensorFlow takes for a switch: 0, 1, false, true, in any case.
std::optional<bool> parse_tf_switch(std::string_view text);

}  // namespace ration::config

// Sizes of settings: bytes, or an exact share of a device.
// Layer: config, a leaf. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace ration::config {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Design: design/settings.md#sizes
class Size {
 public:
  Size() = default;
  static Size of_bytes(std::uint64_t bytes) { return Size(bytes, 0); }
  // REQUIRES: 0 < numerator <= denominator, and denominator divides 10^18 (every decimal fraction that can be written).
  static Size of_share(std::uint64_t numerator, std::uint64_t denominator);

  [[nodiscard]] bool is_share() const { return denominator_ != 0; }
  // Bytes on a device of `total_bytes`; a share is truncated to a byte.
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t total_bytes) const;
  // The shortest exact text: where parse_size accepts it, it returns this size.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Size &, const Size &) = default;

 private:
  Size(std::uint64_t numerator, std::uint64_t denominator) : numerator_(numerator), denominator_(denominator) {}

  std::uint64_t numerator_ = 0;    // bytes if denominator_ is 0
  std::uint64_t denominator_ = 0;  // in lowest terms
};

// A Size of at least 1 MiB (a share: above 0), or one sentence with the error and what was likely meant.
std::variant<Size, std::string> parse_size(std::string_view text);
// The same of no device: a share is none.
std::variant<Size, std::string> parse_whole_size(std::string_view text);

// For what is no limit, so that any number of bytes will do, also 0. `examples` are for the sentence.
std::variant<Size, std::string> parse_amount(std::string_view text, std::string_view examples);
// The same where a share has no meaning.
std::variant<std::uint64_t, std::string> parse_bytes(std::string_view text);

// A decimal number of JSON or Python without its exponent: 1e9 and 1000000000.0 are 1000000000, 4e-1 is 0.4. At most 18
// decimals are kept. 1.0 stays: a share of all of the device is not the number 1. Exponents beyond 40 stay, too.
std::string plain_number(std::string_view text);

// For people: "512MiB", "1.76MiB", "6.40GiB"; at most seven characters. To the nearest in three digits, so that parts
// add up to what they are of, but whole KiB and MiB as they are; only nothing is "0B".
// Design: design/settings.md#shown-sizes
std::string show_bytes(std::uint64_t bytes);
// The same where the byte counts: "6.40GiB (6871947673 bytes)", "659 bytes".
std::string show_exact_bytes(std::uint64_t bytes);

}  // namespace ration::config

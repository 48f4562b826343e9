// Sizes in settings: bytes, or an exact share of a device.
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
  // REQUIRES: 0 < numerator <= denominator, and denominator divides 10^18 (so every decimal fraction can be written).
  static Size of_share(std::uint64_t numerator, std::uint64_t denominator);

  [[nodiscard]] bool is_share() const { return denominator_ != 0; }
  // The size in bytes on a device of `total_bytes`; a share is rounded down to a byte.
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t total_bytes) const;
  // The shortest exact text. If parse_size() accepts this text, it returns an equal size.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Size &, const Size &) = default;

 private:
  Size(std::uint64_t numerator, std::uint64_t denominator) : numerator_(numerator), denominator_(denominator) {}

  std::uint64_t numerator_ = 0;    // in bytes if denominator_ is 0
  std::uint64_t denominator_ = 0;  // in lowest terms; 0: not a share
};

// Returns a Size (at least 1 MiB, or a share above 0), or one sentence that states the error and what was likely meant.
std::variant<Size, std::string> parse_size(std::string_view text);
// Like parse_size(), but for a size that does not belong to a device, so that a share is an error.
std::variant<Size, std::string> parse_whole_size(std::string_view text);

// For sizes that are not limits: any number of bytes is accepted, even 0. The error sentence quotes `examples`.
std::variant<Size, std::string> parse_amount(std::string_view text, std::string_view examples);
// Like parse_amount(), but for sizes for which a share has no meaning.
std::variant<std::uint64_t, std::string> parse_bytes(std::string_view text);

// A decimal number of JSON or Python, rewritten without its exponent: 1e9 and 1000000000.0 become 1000000000, 4e-1
// becomes 0.4. At most 18 decimal places are kept. 1.0 is unchanged, because a share of the whole device is not the
// number 1. Exponents beyond 40 are unchanged too.
std::string plain_number(std::string_view text);

// For people: "512MiB", "1.76MiB", "6.40GiB"; at most seven characters. Rounded to three digits, so parts add up to
// their whole except in the last digit. Whole KiB and MiB are exact. Only a size of 0 bytes is shown as "0B".
// Design: design/settings.md#shown-sizes
std::string show_bytes(std::uint64_t bytes);
// Like show_bytes(), followed by the exact number if it differs: "6.40GiB (6871947673 bytes)", "659 bytes".
std::string show_exact_bytes(std::uint64_t bytes);

}  // namespace ration::config

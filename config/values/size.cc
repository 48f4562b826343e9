#include "config/values/size.h"

#include <array>
#include <numeric>

namespace ration::config {

namespace {

// Holds a product of two 64-bit numbers exactly; a double would round.
__extension__ typedef unsigned __int128 Wide;

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 4> kBinaryUnits = {
    {{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}}};

std::uint64_t power_of_ten(int exponent) {
  std::uint64_t power = 1;
  for (; exponent > 0; --exponent) {
    power *= 10;
  }
  return power;
}

}  // namespace

Size Size::of_share(std::uint64_t numerator, std::uint64_t denominator) {
  const std::uint64_t divisor = std::gcd(numerator, denominator);
  return Size(numerator / divisor, denominator / divisor);
}

std::uint64_t Size::bytes_of(std::uint64_t total_bytes) const {
  if (!is_share()) {
    return numerator_;
  }
  return static_cast<std::uint64_t>(Wide{total_bytes} * numerator_ / denominator_);
}

std::string Size::text() const {
  if (!is_share()) {
    for (const Unit &unit : kBinaryUnits) {
      if (numerator_ != 0 && numerator_ % unit.bytes == 0) {
        return std::to_string(numerator_ / unit.bytes) + std::string(unit.name);
      }
    }
    return std::to_string(numerator_);
  }
  const std::uint64_t parts = numerator_ * (power_of_ten(18) / denominator_);  // of 10^18
  std::string text = std::to_string(parts / power_of_ten(16));
  if (std::uint64_t rest = parts % power_of_ten(16); rest != 0) {
    std::string decimals = std::to_string(rest);
    decimals.insert(0, 16 - decimals.size(), '0');
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return text + "%";
}

std::string show_bytes(std::uint64_t bytes) {
  const std::uint64_t unit = bytes >= kMiB ? kMiB : bytes >= 1024 ? 1024 : 1;
  std::string digits = std::to_string(bytes / unit);
  for (std::size_t i = digits.size(); i > 3; i -= 3) {
    digits.insert(i - 3, 1, ',');
  }
  return digits + (unit == kMiB ? " MiB" : unit == 1024 ? " KiB" : bytes == 1 ? " byte" : " bytes");
}

}  // namespace ration::config

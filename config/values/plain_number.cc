#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "config/values/size.h"

namespace ration::config {

namespace {

constexpr int kLargestExponent = 40;       // no setting is larger than 10^40 or smaller than 10^-40
constexpr std::size_t kMostDecimals = 18;  // of a share: the rest is less than a byte of any device

}  // namespace

std::string plain_number(std::string_view text) {
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(text.front() == '-' ? 1 : 0, e - (text.front() == '-' ? 1 : 0));
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string digits(mantissa.substr(0, point));
  digits += mantissa.substr(std::min(point + 1, mantissa.size()));
  int exponent = 0;
  if (e < text.size()) {
    const std::size_t begin = e + (text[e + 1] == '+' ? 2 : 1);
    const auto read = std::from_chars(text.data() + begin, text.data() + text.size(), exponent);
    if (read.ec != std::errc() || std::abs(exponent) > kLargestExponent) {
      return std::string(text);
    }
  }
  // The position of the decimal point among the digits; it may lie before the first or after the last.
  const int whole = static_cast<int>(point) + exponent;
  const int missing = std::max(0, whole - static_cast<int>(digits.size()));
  digits = std::string(static_cast<std::size_t>(std::max(0, -whole)), '0') + digits +
           std::string(static_cast<std::size_t>(missing), '0');
  const auto at = static_cast<std::size_t>(std::max(0, whole));
  std::string before = digits.substr(0, at);
  std::string after = digits.substr(at, kMostDecimals);
  before.erase(0, std::min(before.find_first_not_of('0'), before.size()));
  after.erase(after.find_last_not_of('0') + 1);
  const std::string sign = text.front() == '-' && !(before + after).empty() ? "-" : "";
  if (after.empty()) {
    return before == "1" && sign.empty() ? std::string(text) : sign + (before.empty() ? "0" : before);
  }
  return sign + (before.empty() ? "0" : before) + "." + after;
}

}  // namespace ration::config

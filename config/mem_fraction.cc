// The fractions of JAX, without floating point: as exact as every other share. Layer: config.
#include <algorithm>

#include "config/foreign_values.h"
#include "config/wording.h"

namespace ration::config {

namespace {

constexpr int kDecimals = 18;
constexpr std::uint64_t kWhole = 1'000'000'000'000'000'000ull;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number, exactly: `digits` times 10^`exponent`, without zeros at either end. No digits is zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  long exponent = 0;
};

// Digits with single underscores between them, as Python allows. Appends them; false where there are none or others.
bool take_digits(std::string_view &text, std::string &digits) {
  const std::size_t before = digits.size();
  while (!text.empty() && (is_digit(text.front()) ||
                           (text.front() == '_' && digits.size() > before && text.size() > 1 && is_digit(text[1])))) {
    if (text.front() != '_') {
      digits += text.front();
    }
    text.remove_prefix(1);
  }
  return digits.size() > before;
}

std::optional<long> take_exponent(std::string_view &text) {
  if (text.empty() || (text.front() != 'e' && text.front() != 'E')) {
    return 0;
  }
  text.remove_prefix(1);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (negative || text.front() == '+')) {
    text.remove_prefix(1);
  }
  std::string digits;
  if (!take_digits(text, digits)) {
    return std::nullopt;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  const long size = digits.size() > 6 ? 1'000'000 : digits.empty() ? 0 : std::stol(digits);
  return negative ? -size : size;
}

std::optional<Decimal> parse_float(std::string_view text) {
  text = trimmed(text);
  Decimal number;
  number.negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (number.negative || text.front() == '+')) {
    text.remove_prefix(1);
  }
  bool any = take_digits(text, number.digits);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::size_t whole = number.digits.size();
    any = take_digits(text, number.digits) || any;
    number.exponent = -static_cast<long>(number.digits.size() - whole);
  }
  const std::optional<long> exponent = take_exponent(text);
  if (!any || !exponent || !text.empty()) {
    return std::nullopt;
  }
  number.exponent += *exponent;
  const std::size_t last = number.digits.find_last_not_of('0') + 1;
  number.exponent += static_cast<long>(number.digits.size() - last);
  number.digits.erase(last);
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  return number;
}

struct Fraction {
  Size share;
  bool above_one = false;
};

std::variant<Fraction, std::string> parse_fraction(std::string_view text) {
  const std::optional<Decimal> number = parse_float(text);
  if (!number) {
    return quoted(text) + " is no fraction; it is written as 0.75, 0.75+ or 0.75-0.85";
  }
  if (number->negative || number->digits.empty()) {
    return "a fraction of nothing, " + quoted(text) + ", leaves no memory; it is above 0";
  }
  const long before_point = static_cast<long>(number->digits.size()) + number->exponent;
  if (before_point >= 1) {
    return Fraction{Size::of_share(1, 1), before_point > 1 || number->digits != "1"};
  }
  std::string decimals(static_cast<std::size_t>(std::min(-before_point, long{kDecimals})), '0');
  decimals += number->digits;
  decimals.resize(kDecimals, '0');
  const std::uint64_t parts = std::stoull(decimals);
  if (parts == 0) {
    return quoted(text) + " of a device is less than a byte";
  }
  return Fraction{Size::of_share(parts, kWhole)};
}

// Where START-CAP is parted; a minus of an exponent parts nothing.
std::size_t parting(std::string_view text) {
  for (std::size_t at = text.find('-', 1); at != std::string_view::npos; at = text.find('-', at + 1)) {
    if (text[at - 1] != 'e' && text[at - 1] != 'E') {
      return at;
    }
  }
  return std::string_view::npos;
}

std::variant<MemFraction, std::string> grown(std::string_view start, std::string_view cap) {
  const auto from = parse_fraction(start);
  const auto to = parse_fraction(cap);
  for (const auto *each : {&from, &to}) {
    if (const std::string *wrong = std::get_if<std::string>(each)) {
      return *wrong;
    }
  }
  const Fraction &first = std::get<Fraction>(from);
  const Fraction &last = std::get<Fraction>(to);
  if (last.above_one || first.above_one || first.share.bytes_of(kWhole) > last.share.bytes_of(kWhole)) {
    return quoted(std::string(start) + "-" + std::string(cap)) + " is to grow to at most 1, from what is not more";
  }
  MemFraction result{last.share, std::nullopt, false};
  if (!(first.share == last.share)) {
    result.start = first.share;
  }
  return result;
}

}  // namespace

std::variant<MemFraction, std::string> parse_mem_fraction(std::string_view text) {
  const std::string_view bare = trimmed(text);
  if (const std::size_t minus = bare.empty() ? std::string_view::npos : parting(bare);
      minus != std::string_view::npos) {
    return grown(bare.substr(0, minus), bare.substr(minus + 1));
  }
  if (!bare.empty() && bare.back() == '+') {
    return grown(bare.substr(0, bare.size() - 1), "1");
  }
  auto fraction = parse_fraction(text);
  if (std::string *wrong = std::get_if<std::string>(&fraction)) {
    return std::move(*wrong);
  }
  const Fraction &read = std::get<Fraction>(fraction);
  return MemFraction{read.share, std::nullopt, read.above_one};
}

}  // namespace ration::config

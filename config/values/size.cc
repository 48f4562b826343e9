#include "config/values/size.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "config/values/ascii.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

// Holds a product of two 64-bit numbers exactly; a double would round, and std::strtod follows the locale.
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

constexpr Wide kLargest = ~std::uint64_t{0};
constexpr Wide kDigitsCeiling = Wide{1} << 87;  // times the largest unit, 2^40, still fits into 128 bits
constexpr int kMostDecimals = 18;               // 10^18 is the largest power of ten in 64 bits
constexpr std::string_view kExamples = "write for example 8GiB, 40% or 0.4";

constexpr std::array<Unit, 21> kUnits = {{{"", 1},
                                          {"k", 1ull << 10},
                                          {"m", 1ull << 20},
                                          {"g", 1ull << 30},
                                          {"t", 1ull << 40},
                                          {"K", 1ull << 10},
                                          {"M", 1ull << 20},
                                          {"G", 1ull << 30},
                                          {"T", 1ull << 40},
                                          {"KiB", 1ull << 10},
                                          {"MiB", 1ull << 20},
                                          {"GiB", 1ull << 30},
                                          {"TiB", 1ull << 40},
                                          {"Ki", 1ull << 10},
                                          {"Mi", 1ull << 20},
                                          {"Gi", 1ull << 30},
                                          {"Ti", 1ull << 40},
                                          {"KB", 1000ull},
                                          {"MB", 1000000ull},
                                          {"GB", 1000000000ull},
                                          {"TB", 1000000000000ull}}};

struct Number {
  Wide digits = 0;  // the number times 10^decimals
  int decimals = 0;
  bool has_point = false;
  std::size_t length = 0;       // characters; 0: this is no number
  const char *wrong = nullptr;  // why the number cannot be used
};

Number read_number(std::string_view text) {
  Number number;
  std::size_t end = 0;
  std::size_t digits_seen = 0;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !number.has_point))) {
    number.has_point = number.has_point || text[end] == '.';
    digits_seen += is_digit(text[end]) ? 1 : 0;
    ++end;
  }
  if (digits_seen == 0) {
    return number;
  }
  number.length = end;
  if (text[end - 1] == '.') {
    number.wrong = "a digit must follow the decimal point";
    return number;
  }
  std::string_view kept = text.substr(0, end);
  if (number.has_point) {
    kept = kept.substr(0, kept.find_last_not_of('0') + 1);  // 0.400 is 0.4
  }
  bool after_point = false;
  for (const char c : kept) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    number.digits = number.digits * 10 + static_cast<unsigned>(c - '0');
    number.decimals += after_point ? 1 : 0;
    if (number.decimals > kMostDecimals) {
      number.wrong = "more than 18 decimals are not read";
      return number;
    }
    if (number.digits > kDigitsCeiling) {
      number.wrong = "it is more than 64 bits can hold";
      return number;
    }
  }
  return number;
}

std::optional<std::uint64_t> bytes_in_unit(std::string_view name) {
  for (const Unit &unit : kUnits) {
    if (unit.name == name) {
      return unit.bytes;
    }
  }
  return std::nullopt;
}

// The unit that `name` is likely meant to be: in another case, Gib for GiB.
std::string_view likely_unit(std::string_view name) {
  std::string wanted = lower(name);
  if (wanted.size() == 2 && wanted[1] == 'i') {
    wanted += 'b';
  }
  for (const Unit &unit : kUnits) {
    if (unit.name.size() == wanted.size() &&
        std::equal(wanted.begin(), wanted.end(), unit.name.begin(), [](char a, char b) { return a == lower(b); })) {
      return unit.name;
    }
  }
  return {};
}

std::string error_in_unit(std::string_view number, std::string_view unit) {
  if ((unit[0] == 'e' || unit[0] == 'E') && unit.size() > 1 &&
      (is_digit(unit[1]) || unit[1] == '+' || unit[1] == '-')) {
    return "exponents are not read; write the number out or with a unit, as 1GB";
  }
  if ((unit[0] == 'x' || unit[0] == 'X') && number == "0") {
    return "hexadecimal is not read; write the bytes in decimal or with a unit, as 8GiB";
  }
  if (unit[0] == ',' || unit[0] == '_' || unit[0] == '\'') {
    return "digits are not grouped, and decimals follow a point; write for example 1048576 or 0.4";
  }
  if (unit[0] == '.') {
    return "a number has one decimal point; write for example 1.5GiB";
  }
  if (const std::string_view meant = likely_unit(unit); !meant.empty()) {
    return quoted(unit) + " is not a unit (upper and lower case matter); likely meant: " + std::string(number) +
           std::string(meant);
  }
  return quoted(unit) + " is not a unit; the units are k m g t KiB MiB GiB TiB KB MB GB TB and %";
}

std::string error_in_small(std::string_view text, std::uint64_t bytes) {
  if (bytes == 0) {
    return "0 is no usable size (the smallest is 1MiB); for no limit leave it unset";
  }
  if (text == "1") {
    return "a bare 1 could be a byte, a GiB or the whole device; write 1GiB, or 100% for the whole";
  }
  std::string line =
      "that is " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + ", below the smallest size, 1MiB";
  if (std::all_of(text.begin(), text.end(), is_digit)) {
    line += "; likely meant: " + std::string(text) + "MiB";
    if (bytes <= 100) {
      line += ", " + std::string(text) + "GiB or " + std::string(text) + "%";
    }
  }
  return line;
}

std::variant<Size, std::string> read_share(const Number &number, bool percent) {
  const int decimals = number.decimals + (percent ? 2 : 0);
  if (decimals > kMostDecimals) {
    return "more than 16 decimals of a percentage are not read";
  }
  const std::uint64_t whole = power_of_ten(decimals);
  if (number.digits == 0) {
    return "a share must be above 0; for no limit leave it unset";
  }
  if (number.digits > whole) {
    return percent
               ? "a percentage is at most 100%; write for example 40%"
               : "a number with a decimal point is a share of the device, above 0 and at most 1; likely meant: a unit "
                 "after it, as 1.5GiB";
  }
  return Size::of_share(static_cast<std::uint64_t>(number.digits), whole);
}

// An error about characters that no size contains; empty: none.
std::string error_in_characters(std::string_view text) {
  if (text.empty()) {
    return "it is empty; " + std::string(kExamples) + ", or leave it unset";
  }
  if (!is_plain(text)) {
    return "a size is written in plain ASCII; " + std::string(kExamples);
  }
  if (text.find(' ') != std::string_view::npos) {
    std::string joined(text);
    joined.erase(std::remove(joined.begin(), joined.end(), ' '), joined.end());
    const bool readable = std::holds_alternative<Size>(parse_size(joined));
    return "a size contains no blanks; " + (readable ? "likely meant: " + joined : std::string(kExamples));
  }
  if (text[0] == '-') {
    return "a size cannot be negative; " + std::string(kExamples);
  }
  if (text[0] == '+') {
    return "a size has no sign; " + std::string(kExamples);
  }
  return {};
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
  constexpr std::uint64_t kKiB = 1024;
  constexpr std::uint64_t kGiB = kKiB * kMiB;
  const auto of = [bytes](std::uint64_t unit, std::uint64_t parts) {  // to the nearest
    return bytes / unit * parts + (bytes % unit * parts + unit / 2) / unit;
  };
  if (bytes < kKiB) {
    return std::to_string(bytes) + "B";
  }
  for (const auto &[unit, name] : {std::pair(kKiB, "KiB"), std::pair(kMiB, "MiB")}) {
    if (of(unit, 1) < 1024) {
      return std::to_string(of(unit, 1)) + name;
    }
  }
  const std::size_t decimals = of(kGiB, 100) < 1000 ? 2 : of(kGiB, 10) < 1000 ? 1 : 0;  // three digits in all
  const std::string digits = std::to_string(of(kGiB, decimals == 2 ? 100 : decimals == 1 ? 10 : 1));
  std::string text = digits.substr(0, digits.size() - decimals);
  text += decimals == 0 ? "" : ".";
  text += digits.substr(digits.size() - decimals);
  return text + "GiB";
}

std::string show_exact_bytes(std::uint64_t bytes) {
  const std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  return bytes < 1024 ? exact : show_bytes(bytes) + " (" + exact + ")";
}

std::variant<Size, std::string> parse_size(std::string_view text) {
  if (std::string wrong = error_in_characters(text); !wrong.empty()) {
    return wrong;
  }
  const Number number = read_number(text);
  if (number.length == 0) {
    return "it does not begin with a number; " + std::string(kExamples);
  }
  if (number.wrong != nullptr) {
    return std::string(number.wrong) + "; " + std::string(kExamples);
  }
  const std::string_view unit = text.substr(number.length);
  if (unit == "%" || (unit.empty() && number.has_point)) {
    return read_share(number, unit == "%");
  }
  const std::optional<std::uint64_t> factor = bytes_in_unit(unit);
  if (!factor) {
    return error_in_unit(text.substr(0, number.length), unit);
  }
  const Wide bytes = number.digits * *factor / power_of_ten(number.decimals);
  if (bytes > kLargest) {
    return "it is more than 64 bits can hold; " + std::string(kExamples);
  }
  if (bytes < kMiB) {
    return error_in_small(text, static_cast<std::uint64_t>(bytes));
  }
  return Size::of_bytes(static_cast<std::uint64_t>(bytes));
}

}  // namespace ration::config

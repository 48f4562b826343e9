#include "config/values/size.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "config/values/ascii.h"
#include "config/values/quotes.h"
#include "config/values/size_syntax.h"

namespace ration::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 4> kBinaryUnits = {
    {{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}}};

std::string with_examples(std::string_view sentence, std::string_view examples) {
  return std::string(sentence) + "; write for example " + std::string(examples);
}

// The unit that `name` is likely meant to be: Gib for GiB.
std::string likely_unit(std::string_view name) {
  std::string wanted = lower(name);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](char c) { return c == 'i' ? c : static_cast<char>(c - 'a' + 'A'); });
  return ration_unit_bytes(wanted.data(), wanted.size()) != 0 ? wanted : std::string();
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
  if (const std::string meant = likely_unit(unit); !meant.empty()) {
    return quoted(unit) + " is not a unit (its b may be a bit); likely meant: " + shown(number) + meant;
  }
  return quoted(unit) + " is not a unit; the units are B, k m g t, Ki Mi Gi Ti, KiB MiB GiB TiB, KB MB GB TB and %";
}

std::string error_in_small(std::string_view text, std::uint64_t bytes, bool takes_share) {
  if (bytes == 0) {
    return "0 is no usable size; the smallest is 1MiB";
  }
  if (text == "1" && !takes_share) {
    return "a bare 1 could be a byte or a GiB; write 1GiB";
  }
  if (text == "1") {
    return "a bare 1 could be a byte, a GiB or the whole device; write 1GiB, or 100% for the whole";
  }
  std::string line =
      "that is " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + ", below the smallest size, 1MiB";
  constexpr std::uint64_t kMostMiB = 10'000;  // of an amount beside a device's memory
  if (std::all_of(text.begin(), text.end(), is_digit) && (takes_share || bytes <= kMostMiB)) {
    line += "; likely meant: " + std::string(text) + "MiB";
    if (bytes <= 100) {
      line += (takes_share ? ", " : " or ") + std::string(text) + "GiB";
      line += takes_share ? " or " + std::string(text) + "%" : "";
    }
  }
  return line;
}

// An error about characters that no size contains; empty: none. `rest`: what is not read.
std::string error_in_characters(std::string_view text, std::string_view rest, std::string_view examples) {
  if (text.empty()) {
    return with_examples("it is empty", examples);
  }
  if (!is_plain(text)) {
    return with_examples("a size is written in plain ASCII", examples);
  }
  if (text[0] == '-') {
    return with_examples("a size cannot be negative", examples);
  }
  if (text[0] == '+') {
    return with_examples("a size has no sign", examples);
  }
  if (rest.find(' ') != std::string_view::npos) {
    std::string joined(text);
    joined.erase(std::remove(joined.begin(), joined.end(), ' '), joined.end());
    constexpr std::string_view kSentence = "a size has no blanks but one before its unit";
    return std::holds_alternative<Size>(parse_size(joined))
               ? std::string(kSentence) + "; likely meant: " + shown(joined)
               : with_examples(kSentence, examples);
  }
  return {};
}

std::string error_in(std::string_view text, const RationSizeText &read, std::string_view examples) {
  if (std::string wrong = error_in_characters(text, text.substr(read.unit), examples); !wrong.empty()) {
    return wrong;
  }
  switch (read.kind) {
    case RATION_SIZE_NO_NUMBER:
      return with_examples("it does not begin with a number", examples);
    case RATION_SIZE_NO_DECIMALS:
      return with_examples("a digit must follow the decimal point", examples);
    case RATION_SIZE_LONG_NUMBER:
      return with_examples("more than 18 decimals are not read", examples);
    case RATION_SIZE_LONG_PERCENT:
      return "more than 16 decimals of a percentage are not read";
    case RATION_SIZE_TOO_LARGE:
      return with_examples("it is more than 64 bits can hold", examples);
    case RATION_SIZE_EMPTY_SHARE:
      return "a share must be above 0";
    case RATION_SIZE_ABOVE_ALL:
      return text.back() == '%' ? "a percentage is at most 100%; write for example 40%"
                                : "a number with a decimal point is a share of the device, above 0 and at most 1; "
                                  "likely meant: a unit after it, as 1.5GiB";
    default:
      return error_in_unit(text.substr(0, read.digits), text.substr(read.unit));
  }
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
  return static_cast<std::uint64_t>(RationWide{total_bytes} * numerator_ / denominator_);
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
  const std::uint64_t hundredth = ration_power(10, RATION_SIZE_DECIMALS - 2);
  const std::uint64_t parts = numerator_ * (hundredth * 100 / denominator_);
  std::string text = std::to_string(parts / hundredth);
  if (std::uint64_t rest = parts % hundredth; rest != 0) {
    std::string decimals = std::to_string(rest);
    decimals.insert(0, 16 - decimals.size(), '0');
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return text + "%";
}

std::string show_bytes(std::uint64_t bytes) {
  if (bytes < 1024) {
    return std::to_string(bytes) + "B";
  }
  std::uint64_t unit = 1024;
  const auto of = [&](std::uint64_t parts) {  // to the nearest
    return static_cast<std::uint64_t>((RationWide{bytes} * parts + unit / 2) / unit);
  };
  constexpr std::string_view kPrefixes = "KMGTPE";
  std::size_t prefix = 0;
  for (; of(1) >= 1024 && prefix + 1 < kPrefixes.size(); ++prefix) {
    unit *= 1024;
  }
  const bool is_whole = prefix < 2 && bytes % unit == 0;                                  // of KiB and MiB
  const std::size_t decimals = is_whole || of(10) >= 1000 ? 0 : of(100) >= 1000 ? 1 : 2;  // three digits in all
  const std::string digits = std::to_string(of(decimals == 2 ? 100 : decimals == 1 ? 10 : 1));
  std::string text = digits.substr(0, digits.size() - decimals);
  text += decimals == 0 ? "" : ".";
  text += digits.substr(digits.size() - decimals);
  return text + kPrefixes[prefix] + "iB";
}

std::string show_exact_bytes(std::uint64_t bytes) {
  const std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  return bytes < 1024 ? exact : show_bytes(bytes) + " (" + exact + ")";
}

std::variant<Size, std::string> parse_amount(std::string_view text, std::string_view examples) {
  const RationSizeText read = ration_read_size(text.data(), text.size());
  switch (read.kind) {
    case RATION_SIZE_BYTES:
      return Size::of_bytes(read.amount);
    case RATION_SIZE_SHARE:
      return Size::of_share(read.amount, read.whole);
    default:
      return error_in(text, read, examples);
  }
}

std::variant<std::uint64_t, std::string> parse_bytes(std::string_view text) {
  auto amount = parse_amount(text, "8GiB");
  if (std::string *wrong = std::get_if<std::string>(&amount)) {
    return std::move(*wrong);
  }
  const Size size = std::get<Size>(amount);
  if (size.is_share()) {
    return "a share has no meaning here: give it in bytes, as 1GiB";
  }
  return size.bytes_of(0);
}

std::variant<Size, std::string> parse_size(std::string_view text) {
  auto amount = parse_amount(text, "8GiB, 40% or 0.4");
  if (const Size *size = std::get_if<Size>(&amount); size != nullptr && !size->is_share() && size->bytes_of(0) < kMiB) {
    return error_in_small(text, size->bytes_of(0), true);
  }
  return amount;
}

std::variant<Size, std::string> parse_whole_size(std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (const std::string *wrong = std::get_if<std::string>(&bytes)) {
    return *wrong;
  }
  const std::uint64_t read = std::get<std::uint64_t>(bytes);
  return read < kMiB ? std::variant<Size, std::string>(error_in_small(text, read, false)) : Size::of_bytes(read);
}

}  // namespace ration::config

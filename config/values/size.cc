#include "config/values/size.h"

#include <array>
#include <numeric>
#include <utility>

#include "config/values/size_syntax.h"
#include "config/values/size_words.h"

namespace ration::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 4> kBinaryUnits = {
    {{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}}};

std::string text_of(const RationSizeWords &words) {
  return {words.text, words.length};
}

std::string error_in_small(std::string_view text, std::uint64_t bytes, bool takes_share) {
  return text_of(ration_small_size(text.data(), text.size(), bytes, takes_share ? 1 : 0));
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
  const auto of = [&](std::uint64_t parts) {  // rounded to the nearest
    return static_cast<std::uint64_t>((RationWide{bytes} * parts + unit / 2) / unit);
  };
  constexpr std::string_view kPrefixes = "KMGTPE";
  std::size_t prefix = 0;
  for (; of(1) >= 1024 && prefix + 1 < kPrefixes.size(); ++prefix) {
    unit *= 1024;
  }
  const bool is_whole = prefix < 2 && bytes % unit == 0;  // a whole number of KiB or MiB
  const std::size_t decimals = is_whole || of(10) >= 1000 ? 0 : of(100) >= 1000 ? 1 : 2;  // three digits in total
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
      return text_of(ration_wrong_size(text.data(), text.size(), read, std::string(examples).c_str()));
  }
}

std::variant<std::uint64_t, std::string> parse_bytes(std::string_view text) {
  auto amount = parse_amount(text, "8GiB");
  if (std::string *wrong = std::get_if<std::string>(&amount)) {
    return std::move(*wrong);
  }
  const Size size = std::get<Size>(amount);
  if (size.is_share()) {
    return "a percentage has no meaning here: write a size in bytes, such as 1GiB";
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

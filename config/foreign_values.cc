#include "config/foreign_values.h"

#include <algorithm>
#include <charconv>

#include "config/wording.h"

namespace ration::config {

namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::variant<Size, std::string> of_bytes(std::uint64_t number, std::uint64_t unit, std::string_view text) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, unit, &bytes)) {
    return quoted(text) + " is more than 64 bits can hold";
  }
  if (bytes < kMiB) {
    return quoted(text) + " is " + std::to_string(bytes) + " bytes, below the smallest limit, 1MiB; is a unit missing?";
  }
  return Size::of_bytes(bytes);
}

template <typename Number>
std::optional<Number> whole_number(std::string_view digits, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::variant<std::optional<Size>, std::string> parse_device_limit(std::string_view text) {
  std::string_view digits = text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
  std::uint64_t unit = 1;
  if (const std::size_t place = std::string_view("kKmMgG").find(digits.empty() ? '?' : digits.back());
      place != std::string_view::npos) {
    unit = std::uint64_t{1} << (10 * (place / 2 + 1));
    digits.remove_suffix(1);
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  const std::optional<std::uint64_t> number = whole_number<std::uint64_t>(digits, base);
  if (!number) {
    return quoted(text) + " is no limit; it is written as 1g, 1024m or in bytes";
  }
  if (*number == 0) {
    return std::optional<Size>();
  }
  auto size = of_bytes(*number, unit, text);
  if (std::string *wrong = std::get_if<std::string>(&size)) {
    return std::move(*wrong);
  }
  return std::optional<Size>(std::get<Size>(size));
}

std::variant<Size, std::string> parse_plain_bytes(std::string_view text) {
  const std::optional<std::uint64_t> number = whole_number<std::uint64_t>(text);
  if (!number) {
    return quoted(text) + " is no number of bytes";
  }
  return of_bytes(*number, 1, text);
}

std::string parse_pinned_limit(std::string_view text, LimitMap &items) {
  std::string first_wrong;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    const std::size_t equals = std::min(item.find('='), item.size());
    std::string size = lower(trimmed(item.substr(std::min(equals + 1, item.size()))));
    if (size.size() > 1 && size.back() == 'b') {
      size.pop_back();
    }
    const bool qualified = !size.empty() && (size.back() == 'm' || size.back() == 'g');
    const auto number = whole_number<std::uint64_t>(std::string_view(size).substr(0, size.size() - qualified));
    const std::string device(trimmed(item.substr(0, equals)));
    std::string wrong;
    if (qualified && number && equals < item.size()) {
      wrong = parse_limit(device + "=" + size, items);
    } else {
      wrong = quoted(item) + " is no item; it is written as 0=1G,1=512MB";
    }
    first_wrong = first_wrong.empty() ? wrong : first_wrong;
  }
  return first_wrong;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') {
      return std::nullopt;
    }
  }
  return whole_number<std::int64_t>(text);
}

std::optional<bool> parse_tf_switch(std::string_view text) {
  const std::string word = lower(text);
  if (word == "1" || word == "true") {
    return true;
  }
  if (word == "0" || word == "false") {
    return false;
  }
  return std::nullopt;
}

}  // namespace ration::config

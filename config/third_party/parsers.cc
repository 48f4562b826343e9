#include "config/third_party/parsers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "config/values/ascii.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

ParsedValue wrong(std::string why) {
  ParsedValue parsed;
  parsed.wrong = std::move(why);
  return parsed;
}

ParsedValue ignored(std::string why) {
  ParsedValue parsed;
  parsed.ignored = std::move(why);
  return parsed;
}

template <auto kMember, typename Value>
Assignment assignment(std::string_view key, std::string text, Value value) {
  return {key, std::move(text), [value](Settings &settings) { settings.*kMember = value; }};
}

template <auto kMember, typename Value>
ParsedValue sets(std::string_view key, std::string text, Value value) {
  ParsedValue parsed;
  parsed.settings.push_back(assignment<kMember>(key, std::move(text), value));
  return parsed;
}

ParsedValue sets_preallocate(bool preallocates) {
  return sets<&Settings::preallocate>("preallocate", preallocates ? "true" : "false",
                                      preallocates ? Preallocate::kTrue : Preallocate::kFalse);
}

ParsedValue limit_of(const Size &size) {
  ParsedValue parsed;
  parsed.limit.emplace_back().size = size;
  return parsed;
}

// `syntax`: what a number that is too small may have been meant to be.
ParsedValue limit_of_bytes(std::uint64_t number, std::uint64_t unit, std::string_view text, std::string_view syntax) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, unit, &bytes)) {
    return wrong(in_quotes(text) + " is more than 64 bits can hold");
  }
  if (bytes < kMiB) {
    return wrong(in_quotes(text) + " is " + std::to_string(bytes) + " bytes, below the smallest limit, 1MiB; " +
                 std::string(syntax));
  }
  return limit_of(Size::of_bytes(bytes));
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

// True unless the value is one of these three words: JAX's default is true, and it takes any other word as true.
bool jax_preallocates(Environment environment) {
  const auto value = value_in(environment, "XLA_PYTHON_CLIENT_PREALLOCATE");
  return !value || (*value != "false" && *value != "False" && *value != "0");
}

struct Fraction {
  Size share;
  bool above_one = false;
};

// Accepts what Python's float() accepts, without underscores, NaN and infinity. The share is computed from the text,
// not from a double, so that it is as exact as a share in Ration's own settings.
std::variant<Fraction, std::string> parse_fraction(std::string_view text, std::string_view examples) {
  std::string_view number = trimmed(text);
  number.remove_prefix(number.substr(0, 1) == "+" ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::invalid_argument || end != number.data() + number.size() || !std::isfinite(value)) {
    return in_quotes(text) + " is not a fraction; write " + std::string(examples);
  }
  if (!(value > 0)) {
    return "the fraction " + in_quotes(text) + " leaves no memory; it must be above 0";
  }
  if (value >= 1) {
    return Fraction{Size::of_share(1, 1), value > 1};
  }
  const auto share = parse_size(plain_number(number));
  if (const Size *size = std::get_if<Size>(&share)) {
    return Fraction{*size};
  }
  return in_quotes(text) + " of a device is less than a byte";
}

// The position at which to split START-CAP: a minus that does not belong to an exponent.
std::size_t split_of(std::string_view text) {
  std::size_t at = text.find('-', 1);
  while (at != std::string_view::npos && lower(text[at - 1]) == 'e') {
    at = text.find('-', at + 1);
  }
  return at;
}

// TensorFlow's booleans: 0, 1, false, true, ignoring case. A switch that is off changes nothing here.
template <auto kMember, typename Value>
ParsedValue parse_tf_switch(std::string_view text, std::string_view key, std::string on, Value value) {
  const std::string word = lower(text);
  if (word == "0" || word == "false") {
    return ignored("that is the default");
  }
  return word == "1" || word == "true" ? sets<kMember>(key, std::move(on), value)
                                       : wrong("it must be true, false, 1 or 0");
}

}  // namespace

std::optional<std::string_view> value_in(Environment environment, std::string_view variable) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.size() > variable.size() + 1 && entry.substr(0, variable.size()) == variable &&
        entry[variable.size()] == '=') {
      return entry.substr(variable.size() + 1);
    }
  }
  return std::nullopt;
}

ParsedValue parse_mem_fraction(std::string_view value, Environment environment) {
  const std::string_view text = trimmed(value);
  std::string_view start = text;
  std::string_view cap = text;
  const std::size_t split = split_of(text);
  const bool grows = split != std::string_view::npos || (!text.empty() && text.back() == '+');
  if (grows) {
    start = text.substr(0, std::min(split, text.size() - 1));
    cap = split != std::string_view::npos ? text.substr(split + 1) : "1";
  }
  constexpr std::string_view kExamples = "0.75, 0.75+ or 0.75-0.85";
  const auto from = parse_fraction(start, kExamples);
  const auto to = parse_fraction(cap, kExamples);
  for (const auto *each : {&from, &to}) {
    if (const std::string *why = std::get_if<std::string>(each)) {
      return wrong(*why);
    }
  }
  const Fraction &first = std::get<Fraction>(from);
  const Fraction &last = std::get<Fraction>(to);
  constexpr std::uint64_t kParts = 1'000'000'000'000'000'000;  // every share is a whole number of these parts
  if (grows && (last.above_one || first.above_one || first.share.bytes_of(kParts) > last.share.bytes_of(kParts))) {
    return wrong(in_quotes(std::string(start) + "-" + std::string(cap)) + " must rise, and end at 1 or below");
  }
  ParsedValue parsed = limit_of(last.share);
  if (value_in(environment, "XLA_CLIENT_MEM_FRACTION") && value_in(environment, "XLA_PYTHON_CLIENT_MEM_FRACTION")) {
    parsed.wrong =
        "XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_MEM_FRACTION are both set, which JAX refuses; unset one";
  }
  if (first.share != last.share && jax_preallocates(environment)) {
    parsed.settings.push_back(assignment<&Settings::preallocate>("preallocate", first.share.text(), first.share));
  }
  if (last.above_one) {
    parsed.settings.push_back(assignment<&Settings::managed>("managed", "count", Managed::kCount));
  }
  return parsed;
}

ParsedValue parse_xla_preallocate(std::string_view, Environment environment) {
  ParsedValue parsed = sets_preallocate(jax_preallocates(environment));
  parsed.settings[0].confirms = jax_preallocates(environment);  // a fraction may already have set the amount
  return parsed;
}

ParsedValue parse_xla_allocator(std::string_view value, Environment environment) {
  const std::string name = lower(value);
  if (name == "vmm") {
    return sets<&Settings::backing>("backing", "vmm", Backing::kVmm);
  }
  if (name == "platform") {
    return sets<&Settings::mode>("mode", "direct", Mode::kDirect);
  }
  if (name == "default" || name == "bfc") {
    return sets<&Settings::mode>("mode", "pool", Mode::kPool);
  }
  if (name == "address") {  // JAX had it in mid-2026
    return ignored("only JAX of mid-2026 has it; it changes nothing here");
  }
  if (name != "cuda_async") {
    return wrong("it must be one of default, platform, bfc, cuda_async, vmm");
  }
  ParsedValue parsed = sets<&Settings::mode>("mode", "async", Mode::kAsync);
  // Unless XLA_PYTHON_CLIENT_PREALLOCATE is false, JAX makes this allocator take its whole pool, whatever TensorFlow's
  // variable says.
  if (jax_preallocates(environment)) {
    parsed.settings.push_back(assignment<&Settings::async_preallocate>("async_preallocate", "-1", true));
  }
  return parsed;
}

ParsedValue parse_tf_allocator(std::string_view value, Environment) {
  return value == "cuda_malloc_async" ? sets<&Settings::mode>("mode", "async", Mode::kAsync)
                                      : ignored("only cuda_malloc_async is supported");
}

ParsedValue parse_tf_growth(std::string_view value, Environment) {
  return value == "true" || value == "false" ? sets_preallocate(value == "false")
                                             : wrong("it must be true or false, in lower case");
}

ParsedValue parse_tf_unified_memory(std::string_view value, Environment) {
  return parse_tf_switch<&Settings::managed>(value, "managed", "count", Managed::kCount);
}

ParsedValue parse_tf_deterministic(std::string_view value, Environment) {
  return parse_tf_switch<&Settings::deterministic_reuse>(value, "",
                                                         "mode async reuses memory in the program's own order", true);
}

// A signed 64-bit number, with optional white space around it.
ParsedValue parse_tf_async_preallocate(std::string_view value, Environment) {
  std::string_view digits = trimmed(value);
  if (digits.size() > 1 && digits[0] == '+' && is_digit(digits[1])) {
    digits.remove_prefix(1);
  }
  const auto number = whole_number<std::int64_t>(digits);
  if (!number) {
    return wrong("it must be a number of bytes, -1 or 0");
  }
  if (*number < -1) {
    return wrong("that much can never be allocated");
  }
  constexpr std::string_view kKey = "async_preallocate";
  if (*number > 0) {
    return sets<&Settings::async_preallocate>(kKey, std::to_string(*number),
                                              Size::of_bytes(static_cast<std::uint64_t>(*number)));
  }
  return sets<&Settings::async_preallocate>(kKey, std::to_string(*number), *number == -1);
}

ParsedValue parse_plain_bytes(std::string_view value, Environment) {
  const auto number = whole_number<std::uint64_t>(value);
  return number ? limit_of_bytes(*number, 1, value, "write the number of bytes, without a unit: 1073741824")
                : wrong(in_quotes(value) + " is not a number of bytes; write it without a unit: 1073741824");
}

ParsedValue parse_plain_mebibytes(std::string_view value, Environment) {
  const auto number = whole_number<std::uint64_t>(value);
  return number ? limit_of_bytes(*number, kMiB, value, "write the number of MiB, without a unit: 1024")
                : wrong(in_quotes(value) + " is not a whole number of MiB; write it without a unit: 1024");
}

ParsedValue parse_portion(std::string_view value, Environment) {
  const auto portion = parse_fraction(value, "0.75");
  if (const auto *why = std::get_if<std::string>(&portion)) {
    return wrong(*why);
  }
  const auto &fraction = std::get<Fraction>(portion);
  return fraction.share == Size::of_share(1, 1) ? ignored("a whole device is not a limit") : limit_of(fraction.share);
}

ParsedValue parse_device_limit(std::string_view value, Environment) {
  std::string_view digits = value.substr(static_cast<std::size_t>(trimmed(value).data() - value.data()));
  std::uint64_t unit = 1;
  if (const std::size_t place = std::string_view("kmg").find(digits.empty() ? '?' : lower(digits.back()));
      place != std::string_view::npos) {
    unit = std::uint64_t{1} << (10 * (place + 1));
    digits.remove_suffix(1);
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && lower(digits[1]) == 'x') {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  const auto number = whole_number<std::uint64_t>(digits, base);
  if (!number) {
    return wrong(in_quotes(value) + " is not a limit; it is written as 1g, 1024m or in bytes");
  }
  return *number == 0 ? ignored("0 means no limit there") : limit_of_bytes(*number, unit, value, "is a unit missing?");
}

ParsedValue parse_pinned_limit(std::string_view value, Environment) {
  ParsedValue parsed;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    const std::string_view item = trimmed(value.substr(begin, end - begin));
    begin = end + 1;
    const std::size_t equals = std::min(item.find('='), item.size());
    std::string size = lower(trimmed(item.substr(std::min(equals + 1, item.size()))));
    if (size.size() > 1 && size.back() == 'b') {
      size.pop_back();
    }
    const bool has_unit = !size.empty() && (size.back() == 'm' || size.back() == 'g');
    const auto number = whole_number<std::uint64_t>(std::string_view(size).substr(0, size.size() - has_unit));
    const std::string why = has_unit && number && equals < item.size()
                                ? parse_limit(std::string(trimmed(item.substr(0, equals))) + "=" + size, parsed.limit)
                                : in_quotes(item) + " is not an item; it is written as 0=1G,1=512MB";
    parsed.wrong = parsed.wrong.empty() ? why : parsed.wrong;
  }
  return parsed;
}

}  // namespace ration::config

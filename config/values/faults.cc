#include "config/values/faults.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::config {
namespace {

constexpr std::string_view kConditions = "nth, every, probability, seed, above, library or after";

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string read_count(std::string_view name, std::string_view value, std::uint64_t &count) {
  const auto number = read_number<std::uint64_t>(value);
  count = number.value_or(0);
  return count != 0 ? ""
                    : std::string(name) + " needs a number from 1 on; write, for example, " + std::string(name) + "=3";
}

std::string read_above(std::string_view value, Fault &fault) {
  if (const auto bytes = read_number<std::uint64_t>(value)) {  // even a small number: this is not a limit
    fault.above_bytes = *bytes;
    return "";
  }
  auto size = parse_size(value);
  if (std::string *wrong = std::get_if<std::string>(&size)) {
    return "above: " + *wrong;
  }
  const Size &read = std::get<Size>(size);
  fault.above_bytes = read.is_share() ? 0 : read.bytes_of(0);
  return read.is_share() ? "above is a size in bytes, not a share" : "";
}

std::string read_condition(std::string_view name, std::string_view value, Fault &fault) {
  if (name == "nth") {
    return read_count(name, value, fault.nth);
  }
  if (name == "every") {
    return read_count(name, value, fault.every);
  }
  if (name == "above") {
    return read_above(value, fault);
  }
  if (name == "after") {
    return read_milliseconds(value, fault.after);
  }
  if (name == "library") {
    fault.library = value;
    return value.empty() ? "library is a part of a file's name" : "";
  }
  if (name == "seed") {
    const auto seed = read_number<std::uint64_t>(value);
    fault.seed = seed.value_or(0);
    return seed ? "" : "seed is a number";
  }
  if (name == "probability") {
    const auto chance = read_number<double>(value);
    fault.probability = chance.value_or(0);
    return chance && *chance > 0 && *chance <= 1 ? "" : "probability is above 0 and at most 1";
  }
  return "unknown condition " + shown(std::string(name)) + ": it is " + std::string(kConditions) + ", each with =";
}

// The parts between separators; an empty text has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

}  // namespace

std::variant<std::vector<Fault>, std::string> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  for (const std::string_view rule : split(text, ';')) {
    Fault fault;
    std::vector<std::string_view> names;
    for (const std::string_view condition : split(rule, ',')) {
      const std::size_t equals = std::min(condition.find('='), condition.size());
      const std::string_view name = condition.substr(0, equals);
      const std::string_view value = condition.substr(std::min(equals + 1, condition.size()));
      if (std::string wrong = read_condition(name, value, fault); !wrong.empty()) {
        return wrong;
      }
      if (std::ranges::find(names, name) != names.end()) {
        return std::string(name) + " is given twice in one rule; separate rules by ';'";
      }
      names.push_back(name);
    }
    if (std::ranges::find(names, "seed") != names.end() && std::ranges::find(names, "probability") == names.end()) {
      return "seed needs a probability: probability=0.01,seed=" + std::to_string(fault.seed);
    }
    if ((fault.nth != 0) + (fault.every != 0) + (fault.probability < 1) > 1) {
      return "nth, every and probability exclude each other in one rule; separate rules by ';'";
    }
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace ration::config

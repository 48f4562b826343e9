#include "cli/run/simulated_machine.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "config/values/ascii.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli {

namespace {

constexpr unsigned kMostDevices = 16;  // a bound of the simulated driver
// All devices together. The driver maps them, twice, and 47 bits of addresses have room for little more.
constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 40;
constexpr std::string_view kTimes = "\u00d7";
constexpr std::string_view kMachineExamples = "16GiB, 2x8GiB or 8GiB,4GiB";

std::string with_example(const std::string &sentence) {
  return sentence + "; write, for example, " + std::string(kMachineExamples);
}

// Where the size begins: after "N×" or "Nx"; 0 if there is no such count.
std::size_t end_of_count(std::string_view item) {
  if (const std::size_t times = item.find(kTimes); times != std::string_view::npos) {
    return times + kTimes.size();
  }
  return item.find_first_of("xX") + 1;
}

struct EqualDevices {
  unsigned count;
  std::uint64_t bytes;  // the size of each
};

// A count that exceeds any machine's becomes the largest number.
std::optional<unsigned> count_in(std::string_view text) {
  unsigned count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(), config::is_digit);
  return !is_number ? std::nullopt : std::optional(error == std::errc() ? count : std::numeric_limits<unsigned>::max());
}

std::string error_in_small_device(std::string_view before, std::string_view size, std::uint64_t bytes) {
  const std::string sentence = "a device of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") +
                               " is too small; the smallest has 1MiB";
  if (bytes == 0 || !std::all_of(size.begin(), size.end(), config::is_digit)) {
    return with_example(sentence);
  }
  const std::string likely = config::shown(std::string(before) + std::string(size));
  return sentence + "; likely meant: " + likely + "GiB or " + likely + "MiB";
}

std::variant<EqualDevices, std::string> read_item(std::string_view item) {
  const std::size_t begin = end_of_count(item);
  const std::string_view before = item.substr(0, begin);
  const std::string_view size = begin == 0 ? item : config::trimmed(item.substr(begin));
  EqualDevices devices{1, 0};
  if (begin != 0) {
    const std::optional<unsigned> count =
        count_in(config::trimmed(before.substr(0, before.size() - (before.ends_with(kTimes) ? kTimes.size() : 1))));
    if (!count) {
      return with_example("it does not begin with a number of devices");
    }
    if (*count == 0) {
      return with_example("there must be at least 1 device");
    }
    if (size.empty()) {
      return with_example("the size of a device is missing");
    }
    devices.count = *count;
  }
  const auto amount = config::parse_amount(size, kMachineExamples);
  if (const std::string *wrong = std::get_if<std::string>(&amount)) {
    return *wrong;
  }
  if (std::get<config::Size>(amount).is_share()) {
    return with_example("a percentage has no meaning here: a simulated device needs a size in bytes");
  }
  devices.bytes = std::get<config::Size>(amount).bytes_of(0);
  if (devices.bytes < config::kMiB) {
    return error_in_small_device(before, size, devices.bytes);
  }
  return devices;
}

std::variant<SimulatedDevices, std::string> read_list(std::string_view text) {
  SimulatedDevices devices;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::string_view item = part.size() == text.size() ? part : config::trimmed(part);
    begin = end + 1;
    if (item.empty()) {
      return with_example(text.empty() ? "it is empty" : "a size is missing in the list");
    }
    const auto read = read_item(item);
    if (const std::string *wrong = std::get_if<std::string>(&read)) {
      return item.size() == text.size() ? *wrong : config::in_quotes(item) + ": " + *wrong;
    }
    const EqualDevices each = std::get<EqualDevices>(read);
    count += each.count;
    if (count > kMostDevices) {
      return with_example("a simulated machine has at most " + std::to_string(kMostDevices) + " devices");
    }
    if (each.bytes > kMostBytes || (bytes += each.count * each.bytes) > kMostBytes) {
      return with_example("a simulated machine has at most 16TiB, all devices together");
    }
    devices.text += devices.text.empty() ? "" : ",";
    devices.text += std::to_string(each.count) + "x" + config::Size::of_bytes(each.bytes).text();
  }
  return devices;
}

// The same text with the characters of a list; empty if it cannot be a list.
std::string likely_list(std::string_view text) {
  std::string likely;
  for (const char c : text) {
    const char meant = c == '*' ? 'x' : c == ';' ? ',' : c;
    if (c != ' ' && (meant != ',' || (!likely.empty() && likely.back() != ','))) {
      likely += meant;
    }
  }
  if (!likely.empty() && likely.back() == ',') {
    likely.pop_back();
  }
  return likely != text && std::holds_alternative<SimulatedDevices>(read_list(likely)) ? likely : std::string();
}

}  // namespace

std::variant<SimulatedDevices, std::string> parse_simulated_devices(std::string_view text) {
  auto devices = read_list(text);
  if (std::holds_alternative<std::string>(devices)) {
    if (const std::string likely = likely_list(text); !likely.empty()) {
      return "it is not a list of devices; likely meant: " + config::shown(likely);
    }
  }
  return devices;
}

std::string error_in_simulation(const std::optional<std::string> &text) {
  if (!text) {
    return {};
  }
  const auto devices = parse_simulated_devices(*text);
  const std::string *wrong = std::get_if<std::string>(&devices);
  return wrong == nullptr ? std::string() : "--sim " + config::shown(*text) + ": " + *wrong;
}

}  // namespace ration::cli

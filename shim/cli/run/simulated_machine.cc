#include "cli/run/simulated_machine.h"

#include <algorithm>
#include <charconv>

#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli {

namespace {

constexpr int kMostDevices = 16;  // of the simulated driver
constexpr std::string_view kTimes = "\u00d7";
constexpr char kExample[] = "; write for example 2x8GiB, 16GiB or 8GiB,4GiB";

// Takes "N×" or "Nx" off the front; 1 where there is none, 0 where N is no count.
int take_count(std::string_view &item) {
  const std::size_t times = item.find(kTimes);
  const std::size_t end = times == std::string_view::npos ? item.find('x') : times;
  if (end == std::string_view::npos) {
    return 1;
  }
  unsigned count = 0;
  const auto [stop, error] = std::from_chars(item.data(), item.data() + end, count);
  const bool is_count = error == std::errc() && stop == item.data() + end;
  item.remove_prefix(end + (times == std::string_view::npos ? 1 : kTimes.size()));
  return is_count ? static_cast<int>(std::min(count, kMostDevices + 1U)) : 0;
}

}  // namespace

std::variant<SimulatedDevices, std::string> parse_simulated_devices(std::string_view text) {
  SimulatedDevices devices;
  int total = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    const std::string whole = config::quoted(item);
    begin = end + 1;
    const int count = take_count(item);
    total += count;
    if (count == 0) {
      return whole + " does not begin with a number of devices" + kExample;
    }
    if (total > kMostDevices) {
      return "a simulated machine has at most " + std::to_string(kMostDevices) + " devices" + kExample;
    }
    const auto size = config::parse_size(item);
    if (const std::string *wrong = std::get_if<std::string>(&size)) {
      return whole + ": " + *wrong;
    }
    if (std::get<config::Size>(size).is_share()) {
      return whole + " is a share; a simulated device needs a size" + kExample;
    }
    devices.text += devices.text.empty() ? "" : ",";
    devices.text += std::to_string(count) + "x" + std::get<config::Size>(size).text();
  }
  return devices;
}

}  // namespace ration::cli
